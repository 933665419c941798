"""Do the tests notice? 37 small faults, each put into a copy of the package, and the tests of that room run.

``python -m benchmarks.mutations`` runs all of them, ``--only 3 17`` some, ``--list`` shows them. The checkout is copied
to a temporary folder and stays as it is. A fault that no test notices is a survivor: its line is tested too little, or
the fault changes nothing. Exit status 1 if any survives.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic

ROOT = Path(__file__).parents[1]
SECONDS = 240  # a fault that makes the tests hang is noticed, too

# (file, the text, the fault, tests of that room). The text stands in the file once.
MUTATIONS = [
    # A sign, a constant, an off-by-one in what rows become.
    ("_rows/links.py", "lowest = logsumexp(", "lowest = 0 * logsumexp(", "tensors"),
    ("_rows/blocks.py", "held % 2 == 1", "held % 2 == 0", "condensed floor"),
    ("_rows/sorting.py", "np.minimum(cut + 1, last)", "np.minimum(cut, last)", "ranks"),
    (
        "_rows/sorting.py",
        "return scores[order], labels[order]",
        "return scores[order], labels",
        "sorting",
    ),
    (
        "_input/scored_labels.py",
        "y_true.min() >= 0 and y_true.max() <= 1",
        "y_true.min() > 0 and y_true.max() <= 1",
        "hints",
    ),
    (
        "_input/scores.py",
        "keep = sample_weight > 0",
        "keep = sample_weight >= 0",
        "weight_type folds multicalibrated prior_shift base",
    ),
    (
        "_solvers/newton.py",
        "np.abs(proposal - at) <= np.where(inside",
        "np.abs(proposal - at) >= np.where(inside",
        "newton",
    ),
    (
        "_solvers/logistic.py",
        "positives + 1) / (positives + 2)",
        "positives + 1) / (positives + 1)",
        "scaling logistic",
    ),
    # Bins and cells.
    (
        "binning/_information_preserving.py",
        "np.union1d(equal_mass, np.searchsorted(table.scores, inner))",
        "equal_mass",
        "information",
    ),
    (
        "binning/_information_preserving.py",
        "np.stack((scores, 1 - scores))",
        "np.stack((scores, 1 + scores))",
        "information",
    ),
    (
        "binning/_base.py",
        "scores > cut.take(",
        "scores >= cut.take(",
        "binning sorting",
    ),
    (
        "_cells/statistics.py",
        "is_above = scores > edge",
        "is_above = scores >= edge",
        "bin_statistics",
    ),
    ("_cells/cells.py", "_ONE_SCORE = 1e-12", "_ONE_SCORE = 1e-2", "by_group interval"),
    # Errors.
    (
        "_errors/binned.py",
        "variance / (self.n_rows - 1)  # Kumar",
        "variance / self.n_rows  # Kumar",
        "golden errors",
    ),
    ("_errors/binned.py", "cells.weight >= 2", "cells.weight > 2", "errors"),
    (
        "_errors/power.py",
        "powers[..., self.weight > 0].max",
        "powers[..., self.weight >= 0].max",
        "errors",
    ),
    # Guarantees and inference.
    ("guarantees/_uniform_mass.py", "2.0 * (rows - 1)", "2.0 * rows", "guarantees"),
    (
        "guarantees/_uniform_mass.py",
        'n_bins if kind == "conditional" else 1',
        '1 if kind == "conditional" else 1',
        "guarantees",
    ),
    (
        "_inference/adjustment.py",
        "np.arange(len(order), 0, -1)",
        "len(order)",
        "adjustment by_group",
    ),
    (
        "_inference/inversion.py",
        "float(1 + np.count_nonzero(hits)) / (1 + len(hits))",
        "float(np.count_nonzero(hits)) / len(hits)",
        "interval calibration_test",
    ),
    (
        "_inference/count_draws.py",
        "skewness = (1 - 2 * f)",
        "skewness = (1 + 2 * f)",
        "interval calibration_test bootstrap",
    ),
    (
        "_inference/bias.py",
        "effect = few * max(effect, 1.0)",
        "effect = max(effect, 1.0)",
        "cluster_bias",
    ),
    (
        "_inference/bias.py",
        "min(1.0, 2 * min(bdtrc(k - 1",
        "min(1.0, 2 * min(bdtrc(k",
        "by_group",
    ),
    # Metrics, evaluation, recalibrators.
    ("metrics/_slope.py", "(1 + confidence_level) / 2", "confidence_level", "slope"),
    (
        "recalibrators/_folds.py",
        "(len(folds) - 1) * gains.var",
        "gains.var",
        "model_selection cautious",
    ),
    (
        "recalibrators/_uniform_mass.py",
        "* (n_rows + 1) // n_bins) - 1",
        "* n_rows // n_bins) - 1",
        "uniform_mass",
    ),
    (
        "recalibrators/_venn_abers.py",
        "upper / (1 - lower + upper)",
        "(lower + upper) / 2",
        "venn_abers",
    ),
    (
        "recalibrators/_clipping.py",
        "likelihoods[best] + _LEAST_GAIN",
        "likelihoods[best]",
        "floor",
    ),
    (
        "recalibrators/_histogram.py",
        "self.smoothing * base_rate",
        "self.smoothing / 2",
        "histogram",
    ),
    (
        "recalibrators/_isotonic.py",
        "weight * distinct, first",
        "distinct, first",
        "isotonic",
    ),
    # Decisions, monitoring, export, engines.
    (
        "decisions/_certified_threshold.py",
        "np.cumsum(wrong[::-1])[::-1]",
        "np.cumsum(wrong)",
        "decisions",
    ),
    (
        "monitoring/_monitor.py",
        "np.logaddexp(starts[0], self._log_detector)",
        "starts[0]",
        "monitoring",
    ),
    ("export/_sql.py", "<={number(high)}", "<{number(high)}", "sql ways_out"),
    ("engines/_weighted.py", "weight - weighted_label", "weight", "engines"),
    # The report and pictures.
    (
        "_report/_sentences.py",
        "_TIMES_HALF_WIDTH = 1.1915876",
        "_TIMES_HALF_WIDTH = 1.0",
        "report",
    ),
    (
        "displays/_frames.py",
        '"loc": "best", "title": title',
        '"loc": "center", "title": title',
        "displays look_book",
    ),
    (
        "displays/_frames.py",
        "0.75 * frame.width, size=size",
        "7.5 * frame.width, size=size",
        "displays look_book",
    ),
]


def copied(folder):
    """Copy what is under version control, and what is about to be."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(
        command, cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout.split("\0"):
        if name and (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)


def noticed(folder, tests):
    """Return whether the tests of a copy fail, and the first of them that does."""
    files = [f"tests/test_{name}.py" for name in tests.split()]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-n0",
        "-p",
        "no:cacheprovider",
        *files,
    ]
    try:
        run = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True, "time is up: say it again on a machine that is not busy"
    if run.returncode not in (0, 1):
        raise RuntimeError(run.stdout + run.stderr)
    failed = [
        line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))
    ]
    return run.returncode == 1, failed[0][:110] if failed else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", type=int, nargs="+", help="numbers of mutations")
    parser.add_argument(
        "--list",
        action="store_true",
        help="show them, and check that their texts are there",
    )
    options = parser.parse_args()
    survivors = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copied(folder)
        for number, (file, text, fault, tests) in enumerate(MUTATIONS, 1):
            if options.only and number not in options.only:
                continue
            path = folder / "skcalib" / file
            source = path.read_text("utf-8")
            if source.count(text) != 1:
                raise ValueError(
                    f"{number}: {text!r} stands {source.count(text)} times in {file}"
                )
            if options.list:
                print(f"{number:2} {file}: {text} -> {fault}")
                continue
            path.write_text(source.replace(text, fault), "utf-8")
            begun = monotonic()
            is_noticed, by = noticed(folder, tests)
            path.write_text(source, "utf-8")
            survivors += [] if is_noticed else [number]
            print(
                f"{number:2} {'noticed' if is_noticed else 'SURVIVES'} {monotonic() - begun:5.0f} s  {file}  {by}",
                flush=True,
            )
    if not options.list:
        print(f"{len(survivors)} survive: {survivors}")
    return bool(survivors)


if __name__ == "__main__":
    sys.exit(main())
