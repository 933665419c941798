"""Faults that the tests miss.

Each small fault is introduced into a copy of the package, and the tests of that
subpackage are run.

``python -m benchmarks.checks.mutations`` runs all faults, ``--only 3 17`` runs some of
them, and ``--list`` prints them. The checkout is copied to a temporary folder and is
not changed. A fault that no test notices is a survivor: either its line is not tested
enough, or the fault has no effect. If the code has changed, the text of a fault may no
longer occur; in that case, replace it by the new text. The exit status is 1 if any
fault survives or does not occur.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import monotonic

ROOT = Path(__file__).parents[2]
SECONDS = 240  # a fault that makes the tests hang is noticed, too

# (file, the text, the fault, tests of that room). The text stands in the file once, or
# once in the whole package: a fault is found where its code has moved to.
MUTATIONS = [
    # A sign, a constant, an off-by-one in what rows become.
    (
        "_rows/links.py",
        "total + np.log(PROBABILITY_CLIP)",
        "np.log(PROBABILITY_CLIP)",
        "small_rules",
    ),
    ("_rows/blocks.py", "filled % 2 == 1", "filled % 2 == 0", "condensed floor"),
    ("_rows/sorting.py", "np.minimum(cut + 1, last)", "np.minimum(cut, last)", "ranks"),
    (
        "_rows/sorting.py",
        "return scores[order], labels[order]",
        "return scores[order], labels",
        "sorting",
    ),
    (
        "_input/scores.py",
        "between.any() and y.min() >= 0 and y.max() <= 1",
        "between.any() and y.min() > 0 and y.max() <= 1",
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
        "np.abs(proposal - point) <= settling_distance",
        "np.abs(proposal - point) >= settling_distance",
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
        "np.union1d(equal_mass, np.searchsorted(table.scores, inner_scores))",
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
        "scores > next_cut, out",
        "scores >= next_cut, out",
        "binning sorting",
    ),
    (
        "_cells/bin_sums.py",
        "np.where(is_above, 0, scores)",
        "np.where(is_above, 0, 1)",
        "bin_statistics",
    ),
    (
        "_cells/binned.py",
        "_ONE_SCORE = 1e-12",
        "_ONE_SCORE = 1e-2",
        "by_group interval",
    ),
    # Errors.
    (
        "_errors/binned.py",
        "gap**2 - variance / (self.n_rows - 1)",
        "gap**2 - variance / self.n_rows",
        "golden errors",
    ),
    ("_errors/binned.py", "cells.weight >= 2", "cells.weight > 2", "errors"),
    (
        "_errors/error.py",
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
        "_inference/drawn_hypotheses.py",
        "float(1 + np.count_nonzero(hits)) / (1 + len(hits))",
        "float(np.count_nonzero(hits)) / len(hits)",
        "interval calibration_test",
    ),
    (
        "_inference/count_laws.py",
        "_square_factor = (1 - 2 * f)",
        "_square_factor = (1 + 2 * f)",
        "interval calibration_test bootstrap",
    ),
    (
        "_inference/bias.py",
        "divisor = max(divisor, effect)",
        "divisor = effect",
        "small_rules",
    ),
    (
        "_inference/shift_test.py",
        "at_least = bdtrc(k - 1, n, p)",
        "at_least = bdtrc(k, n, p)",
        "by_group",
    ),
    # Metrics, evaluation, recalibrators.
    (
        "metrics/_slope.py",
        "ndtri((1 + confidence_level) / 2)\n        if np.isnan(variance)",
        "ndtri(confidence_level)\n        if np.isnan(variance)",
        "slope",
    ),
    (
        "_fitting/gains.py",
        "np.sqrt(variance + variance_of_fits)",
        "np.sqrt(variance)",
        "model_selection recalibrator",
    ),
    (
        "recalibrators/_uniform_mass.py",
        "* (n_rows + 1) // n_bins)",
        "* n_rows // n_bins)",
        "uniform_mass",
    ),
    (
        "recalibrators/_venn_abers.py",
        "upper / (1 - lower + upper)",
        "(lower + upper) / 2",
        "venn_abers",
    ),
    (
        "_fitting/floor.py",
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
        "decisions/_search.py",
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
    ("export/_sql.py", "<={number(high)}", "<{number(high)}", "sql formats"),
    ("engines/_weighted.py", "weight - weighted_label", "weight", "engines"),
    # The report and pictures.
    (
        "_verdicts.py",
        "if low > tolerance or high < -tolerance:",
        "if low > 0 or high < 0:",
        "verdicts",
    ),
    (
        "displays/_finish.py",
        '"loc": "best", "title": title',
        '"loc": "center", "title": title',
        "displays look_book",
    ),
    (
        "displays/_finish.py",
        "0.75 * frame.width, size)",
        "7.5 * frame.width, size)",
        "displays look_book",
    ),
    # Rules that one line holds: each survived once.
    (
        "recalibrators/_recalibrator.py",
        "least * n_rows**2 >= 1",
        "least * n_rows >= 1",
        "small_rules",
    ),
    (
        "recalibrators/_recalibrator.py",
        "np.hypot(error_of_rows, gain_of_imagined_row)",
        "error_of_rows",
        "small_rules",
    ),
    (
        "_fitting/gains.py",
        "return len(codes) > 0 and codes.min() < codes.max()",
        "return len(codes) > 0 and codes.min() <= codes.max()",
        "cross_validate",
    ),
    (
        "binning/_minimum_mass.py",
        "self.min_weight * (1 - WEIGHT_TOLERANCE)",
        "self.min_weight",
        "small_rules",
    ),
    (
        "decisions/_expected_cost.py",
        "np.ndim(self.cost_matrix) == 2 and len(self.cost_matrix) == 2",
        "np.ndim(self.cost_matrix) == 2",
        "small_rules",
    ),
    (
        "_input/scores.py",
        "total[difference <= untouched] = 1",
        "total[difference < 0] = 1",
        "small_rules",
    ),
    (
        "_defaults.py",
        "type(now) is type(remembered_value)",
        "True",
        "small_rules",
    ),
    # Files that no fault above touches.
    (
        "_rows/keys.py",
        "/ 16.0**HEX_DIGITS",
        "/ 15.0**HEX_DIGITS",
        "uniform_mass formats",
    ),
    (
        "_intervals/binomial.py",
        "return centre - half_width, centre + half_width",
        "return centre - half_width, centre",
        "guarantees",
    ),
    (
        "_verdicts.py",
        "return 1 - (1 - confidence_level) / max(n_intervals, 1)",
        "return 1 - (1 - confidence_level)",
        "verdicts",
    ),
    (
        "_verdicts.py",
        "    if needed > n:\n        return needed\n    return None",
        "    return needed",
        "verdicts",
    ),
    (
        "_solvers/logistic.py",
        "1 / (weight_of_class + 2)), codes)",
        "1 / (weight_of_class + 1)), codes)",
        "temperature",
    ),
    (
        "_solvers/mixture.py",
        "share = row_weights(sample_weight, likelihoods)",
        "share = row_weights(None, likelihoods)",
        "mixture",
    ),
    (
        "binning/_equal_mass.py",
        "return -(-np.arange(1, n_bins) * n_rows // n_bins)",
        "return np.arange(1, n_bins) * n_rows // n_bins",
        "binning",
    ),
    (
        "binning/_monotonic_sweep.py",
        "return np.linspace(0, 1, n_bins + 1)",
        "return np.linspace(0, 1, n_bins + 2)",
        "sweep",
    ),
    (
        "_errors/proper_scores.py",
        "- 2.0 * scores_of_labels(scores, labels) + 1",
        "- 2.0 * scores_of_labels(scores, labels)",
        "proper_scores",
    ),
    (
        "_errors/kde.py",
        "bandwidth = 1.06 * deviation",
        "bandwidth = 1.16 * deviation",
        "small_rules",
    ),
    (
        "_errors/smooth.py",
        "return float(_smoothed_error(coefficients, sigma)) - sigma",
        "return float(_smoothed_error(coefficients, sigma)) - 2 * sigma",
        "smoothing bin_free",
    ),
    (
        "_errors/bin_free.py",
        "return xp.maximum(xp.max(sums, axis=-1), -xp.min(sums, axis=-1))",
        "return xp.max(sums, axis=-1)",
        "bin_free",
    ),
    (
        "_errors/kernel.py",
        "return float((total - self_pairs @ squares) / n_pairs)",
        "return float(total / n_pairs)",
        "canonical",
    ),
    (
        "_errors/decision.py",
        "cost += self.share * at_least(xp, self.scores - recalibrated, 0)",
        "cost += 0 * at_least(xp, self.scores - recalibrated, 0)",
        "decision_error",
    ),
    (
        "guarantees/_finite_sample.py",
        "return n_bins * float(probability @ failure) - miscoverage",
        "return float(probability @ failure) - miscoverage",
        "guarantees",
    ),
    (
        "guarantees/_certificate.py",
        "ceil(self.epsilon * 1e4) / 1e4",
        "int(self.epsilon * 1e4) / 1e4",
        "certified guarantees",
    ),
    (
        "simulation/_curves.py",
        'return as_numbers(scores, "scores") ** self.d',
        'return as_numbers(scores, "scores") ** abs(self.d + 1e-3)',
        "simulation",
    ),
    (
        "recalibrators/_prior_shift.py",
        "return counts / counts.sum()",
        "return counts / counts.max()",
        "prior_shift",
    ),
    (
        "recalibrators/_quadratic.py",
        "return np.array([-np.inf, 0, 0])",
        "return None",
        "quadratic",
    ),
    (
        "recalibrators/_spline.py",
        "return knots + [0.0, 1.0]",
        "return knots",
        "spline",
    ),
    (
        "decisions/_net_benefit.py",
        "return np.where(price > 0, avoided, np.nan)",
        "return avoided",
        "small_rules",
    ),
    (
        "decisions/_routing.py",
        "return min(max(chances) + _BETWEEN_SHARES, 1.0)",
        "return min(max(chances), 1.0)",
        "small_rules",
    ),
    (
        "evaluation/_paired_differences.py",
        "(n_units - 1) * (without.mean() - without)",
        "n_units * (without.mean() - without)",
        "small_rules",
    ),
    (
        "monitoring/_excess.py",
        "pvalue = (1 + n_reached) / (1 + len(drawn))",
        "pvalue = n_reached / len(drawn)",
        "calibration_change",
    ),
    (
        "maps/_class_functions.py",
        "return values - row_sums(rows.xp, values) / self.width",
        "return values - row_sums(rows.xp, values) / 2",
        "maps formats",
    ),
    (
        "maps/_forms.py",
        "return np.nextafter(np.asarray(cuts, dtype=np.float64), -np.inf)",
        "return np.asarray(cuts, dtype=np.float64)",
        "maps formats",
    ),
    (
        "_fitting/gains.py",
        "return (gain.high - gain.low) / (2 * ndtri((1 + level) / 2))",
        "return (gain.high - gain.low) / ndtri((1 + level) / 2)",
        "small_rules recalibrator",
    ),
    (
        "_fitting/floor.py",
        "np.arange(n_quantiles) + 0.5",
        "np.arange(n_quantiles) + 0.0",
        "small_rules",
    ),
    (
        "_fitting/partial_pooling.py",
        "return class_pooling * n_classes * pooled.distance.T",
        "return class_pooling * pooled.distance.T",
        "partial_pooling",
    ),
    (
        "metrics/_decomposition.py",
        "return -xlogy(frequency, forecast) - xlog1py(1 - frequency, -forecast)",
        "return -xlogy(frequency, forecast) - xlogy(1 - frequency, forecast)",
        "decomposition",
    ),
    (
        "model_selection.py",
        "np.where(is_within, objective, -np.inf)",
        "np.where(is_within, objective, objective)",
        "model_selection",
    ),
    (
        "_inference/bootstrap.py",
        "low = 2 * estimate - upper_quantile\n    high = 2 * estimate - lower_quantile",
        "low = lower_quantile\n    high = upper_quantile",
        "small_rules",
    ),
    (
        "_inference/closed_form.py",
        "np.clip(8 * np.sum(terms), 0, 1)",
        "np.clip(4 * np.sum(terms), 0, 1)",
        "calibration_test",
    ),
    (
        "metrics/_segment_test.py",
        "(1 + n_reached) / (len(drawn) + 1)",
        "n_reached / len(drawn)",
        "segments",
    ),
    (
        "evaluation/_paired_differences.py",
        "stdtrit(degrees, (1 + level) / 2) * error",
        "stdtrit(degrees, level) * error",
        "compare interval decisions",
    ),
    # Thirty in files that no fault above touches.
    (
        "_errors/sweep.py",
        "bin_frequency[:, :-1] - _TIED",
        "bin_frequency[:, :-1] + _TIED",
        "small_rules",
    ),
    (
        "_errors/two_bin.py",
        "return np.ones(len(classes))",
        "return np.full(len(classes), 1 / len(classes))",
        "two_bin",
    ),
    (
        "_errors/score_grid.py",
        "masses[..., [0, -1]] *= 2",
        "masses[..., [0, -1]] *= 1",
        "smoothing bin_free",
    ),
    (
        "_errors/error.py",
        "(power > _SMALLEST_POWER)",
        "(power >= 0)",
        "errors",
    ),
    (
        "_cells/binned.py",
        "factor = weight.sum() / (weight @ weight)",
        "factor = 1 / weight.mean()\n",
        "weight_type",
    ),
    (
        "_cells/tasks.py",
        "(self.labels - self.scores).astype(np.float64)",
        "(self.labels - 0.0 * self.scores).astype(np.float64)",
        "pooled reductions",
    ),
    (
        "_rows/pooling.py",
        "np.minimum(mean_total * pooled, 1)",
        "mean_total * pooled",
        "small_rules",
    ),
    (
        "_input/groups.py",
        "np.minimum(ordered[n_rows - 1], second_largest)",
        "np.minimum(ordered[n_rows], second_largest)",
        "named_groups by_group",
    ),
    (
        "_intervals/rare.py",
        "gammaincinv(mean**2 / variance, probability)",
        "gammaincinv(mean / variance, probability)",
        "compare summary",
    ),
    (
        "_intervals/score.py",
        "np.where(possible, values - theta[:, None] * base, 0.0)",
        "np.where(possible, values - theta[:, None], 0.0)",
        "net_benefit",
    ),
    (
        "_intervals/influence.py",
        "least = np.sum((weight * self.values) ** 2) / independent_square",
        "least = 1.0",
        "small_rules",
    ),
    (
        "_fitting/folds.py",
        "codes = 1 - codes",
        "codes = codes",
        "small_rules",
    ),
    (
        "_fitting/folds.py",
        "weight[codes == 1].sum() - weight[codes == 0].sum()",
        "weight[codes == 1].sum() + weight[codes == 0].sum()",
        "small_rules",
    ),
    (
        "_fitting/ridge_path.py",
        "    return ridges[:1]",
        "    return ridges",
        "small_rules",
    ),
    (
        "_solvers/leave_one_out.py",
        "leverage *= np.minimum(sample_weight, 1)",
        "leverage *= sample_weight",
        "small_rules",
    ),
    (
        "_solvers/random_effects.py",
        "np.sqrt(max(scale, 1.0) / weight.sum())",
        "np.sqrt(scale / weight.sum())",
        "by_cluster",
    ),
    (
        "_solvers/online_logistic.py",
        "refill = (1 - retention) * self.ridge",
        "refill = 0.0",
        "online",
    ),
    (
        "decisions/_cluster_bets.py",
        "np.logaddexp.reduce(log_wealth) - np.log(len(log_wealth))",
        "np.logaddexp.reduce(log_wealth)",
        "decisions certified_thresholds",
    ),
    (
        "evaluation/_sample_size.py",
        "return (1 - frequency) / (frequency * error**2)",
        "return (1 - frequency) / error**2",
        "by_cluster",
    ),
    (
        "monitoring/_trend.py",
        " / time_variance / np.maximum(1 - leverage, 1e-3)",
        " / time_variance",
        "trend",
    ),
    (
        "monitoring/_groups.py",
        "* 6 / (np.pi * k) ** 2",
        "/ (len(self.monitors_) + 1)",
        "group_monitors",
    ),
    (
        "recalibrators/_group_parts.py",
        "sizes[small] + min_size)",
        "sizes[small])",
        "small_rules",
    ),
    (
        "recalibrators/_stacked.py",
        "return _TEMPERED_SHARE * weights + (1 - _TEMPERED_SHARE) * most_likely",
        "return most_likely",
        "stacked",
    ),
    (
        "maps/_inverse.py",
        "np.where(end == 0, lowest, _score(high))",
        "_score(high)",
        "small_rules",
    ),
    (
        "export/_json_values.py",
        "unknown = data.keys() - wanted - optional",
        "unknown = set()",
        "small_rules",
    ),
    (
        "guarantees/_frequencies.py",
        "max(ratio.max(), 1.0 / ratio.min())",
        "ratio.max()",
        "guarantees",
    ),
    (
        "guarantees/_frequencies.py",
        "samples > events, betaincinv(events + 1, others, level)",
        "samples > events, betaincinv(events, others, level)",
        "guarantees",
    ),
    (
        "metrics/_segment_columns.py",
        "if len(set(texts)) < len(texts):",
        "if False:",
        "segments",
    ),
    (
        "simulation/_quadrature.py",
        "score < 0.5, score, 1 - complement), complement",
        "score < 0.5, score, 1 - complement), 1 - score",
        "simulation",
    ),
    (
        "binning/_pool_adjacent_violators.py",
        "last_of_block = fit.blocks[1:-1] - 1",
        "last_of_block = fit.blocks[1:-1]",
        "small_rules",
    ),
]


def copied(folder):
    """Copy the files under version control, and those about to be added."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(
        command, cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout.split("\0"):
        if name and (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)


def place_of(file, text, package):
    """Return the path of the file in which a text occurs once: the file that is named,
    or else the only such file of the package.
    """
    named = package / file
    if named.exists() and named.read_text("utf-8").count(text) == 1:
        return named
    counts = {
        path: path.read_text("utf-8").count(text) for path in package.rglob("*.py")
    }
    places = [path for path, count in counts.items() if count]
    if len(places) != 1 or counts[places[0]] != 1:
        raise ValueError(f"{text!r} stands in {len(places)} files, not once in {file}")
    return places[0]


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
    gone = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copied(folder)
        for number, (file, text, fault, tests) in enumerate(MUTATIONS, 1):
            if options.only and number not in options.only:
                continue
            try:
                path = place_of(file, text, folder / "skcalib")
            except ValueError as error:
                gone.append(number)
                print(f"{number:2} HAS NO PLACE: {error}")
                continue
            source = path.read_text("utf-8")
            if options.list:
                print(f"{number:2} {file}: {text} -> {fault}")
                continue
            path.write_text(source.replace(text, fault), "utf-8")
            begun = monotonic()
            is_noticed, by = noticed(folder, tests)
            path.write_text(source, "utf-8")
            survivors += [] if is_noticed else [number]
            print(
                f"{number:2} {'noticed' if is_noticed else 'SURVIVES'}"
                f" {monotonic() - begun:5.0f} s  {file}  {by}",
                flush=True,
            )
    if not options.list:
        print(f"{len(survivors)} survive: {survivors}")
    if gone:
        print(f"{len(gone)} need the text that stands there now: {gone}")
    return bool(survivors or gone)


if __name__ == "__main__":
    sys.exit(main())
