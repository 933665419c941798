"""Level and power of methods for groups, segments and time:
``python -m benchmarks.heterogeneity_power``.

Each figure is a share of simulated samples, or a median delay in rows. It is compared
with the best possible method (a test that knows the planted effect) and with common
alternatives: p-values that are not adjusted, normal approximations, and tests on
windows. The multicalibrated recalibrator (and MCGrad, if it is installed) is measured
on data sets that come with scikit-learn and on simulated ones; ``--data DIR`` adds the
data sets of that folder.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm

from benchmarks.multicalibration_tables import run as run_tables
from skcalib._inference.adjustment import adjusted_pvalues, holm, pvalue_distribution
from skcalib._inference.shift_test import bias_test
from skcalib.metrics import calibration_test, segment_calibration_test
from skcalib.monitoring import CalibrationMonitor, calibration_change

_LEVEL = 0.05
_WINDOW = 500


def main(argv=None):
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.heterogeneity_power", description=__doc__
    )
    parser.add_argument(
        "--samples", type=int, default=100, help="simulated samples of each figure"
    )
    parser.add_argument(
        "--data", type=Path, help="folder of the real data (with tabular/)"
    )
    parser.add_argument(
        "--json", action="store_true", help="print JSON in place of the tables"
    )
    options = parser.parse_args(argv)
    parts = {
        "groups": groups,
        "segments": segments,
        "change": change,
        "monitor": monitor,
    }
    found = {name: part(options.samples) for name, part in parts.items()}
    found["multicalibration"] = run_tables()
    if options.data:
        found["multicalibration, tables of the folder"] = run_tables(options.data)
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        for name, rows in found.items():
            print(f"\n{name}")
            for row in rows:
                print("  " + ", ".join(f"{key}={value}" for key, value in row.items()))
    return 0


def groups(n_samples):
    """Measure the share of calibrated families of groups in which any group is
    rejected: by Holm's method, by its exact version, and with normal p-values.
    """
    rows = []
    for shape, parameters in {"smooth": (1, 3), "rare": (1, 60), "tied": None}.items():
        for n, n_groups in ((500, 10), (2000, 100), (20_000, 300)):
            rng, rejected = np.random.default_rng(0), np.zeros(3)
            for _ in range(n_samples):
                scores = (
                    rng.integers(1, 10, n) / 10
                    if parameters is None
                    else rng.beta(*parameters, n)
                )
                events, codes = rng.random(n) < scores, rng.integers(0, n_groups, n)
                parts = [
                    (scores[own], events[own].sum()) for own in _rows_by_code(codes)
                ]
                pvalues = np.array(
                    [bias_test(part, k, 0.9).pvalue for part, k in parts]
                )
                exact = adjusted_pvalues(
                    pvalues, [pvalue_distribution(part) for part, _ in parts]
                )
                normal = holm(np.array([_normal_pvalue(part, k) for part, k in parts]))
                rejected += [
                    adjusted.min() <= _LEVEL
                    for adjusted in (holm(pvalues), exact, normal)
                ]
            shares = dict(
                zip(
                    ("holm", "exact", "normal"),
                    (rejected / n_samples).tolist(),
                    strict=True,
                )
            )
            rows.append({"scores": shape, "rows": n, "groups": n_groups, **shares})
    return rows


def segments(n_samples):
    """Measure the share of rejections without and with a planted segment of a tenth of
    the rows, shifted by 1 in log-odds.
    """
    rows = []
    for n, n_columns in ((500, 2), (2000, 4), (2000, 8)):
        for shift in (0.0, 1.0):
            rng, rejected, n_segments = np.random.default_rng(0), np.zeros(3), 0
            for seed in range(n_samples):
                scores, X = rng.beta(1, 3, n), rng.normal(size=(n, n_columns))
                planted = (X[:, 0] > norm.ppf(0.7)) & (X[:, 1] < norm.ppf(1 / 3))
                events = rng.random(n) < expit(logit(scores) + shift * planted)
                result = segment_calibration_test(
                    events, scores, X, max_bins=4, n_resamples=199, random_state=seed
                )
                n_segments = max(n_segments, len(result.segments))
                table = result.segments
                variance = table.n * table.mean_score * (1 - table.mean_score)
                unadjusted = 2 * norm.sf(
                    np.max(np.abs(table.bias) * table.n / np.sqrt(variance))
                )
                known = bias_test(scores[planted], events[planted].sum(), 0.9).pvalue
                rejected += (
                    result.pvalue <= _LEVEL,
                    unadjusted <= _LEVEL,
                    known <= _LEVEL,
                )
            shares = (rejected / n_samples).tolist()
            rows.append(
                {"rows": n, "segments": n_segments, "shift": shift}
                | dict(
                    zip(
                        ("adjusted", "unadjusted", "known_segment"), shares, strict=True
                    )
                )
            )
    return rows


def change(n_samples):
    """Measure the share of rejections for two samples with different scores and a shift
    of the log-odds; the best possible test knows the direction of the shift.
    """
    rows = []
    for n, shift in ((300, 0.0), (1000, 0.0), (1000, 0.15), (1000, 0.3), (1000, 0.6)):
        rng, rejected, covered = np.random.default_rng(0), np.zeros(2), 0
        for seed in range(n_samples):
            before, after = rng.beta(1, 3, n), rng.beta(2, 3, n)
            y_before, y_after = (
                rng.random(n) < before,
                rng.random(n) < expit(logit(after) + shift),
            )
            result = calibration_change(
                y_before, before, y_after, after, n_resamples=199, random_state=seed
            )
            variance = sum(np.sum(s * (1 - s)) for s in (before, after)) / n**2
            z = ((y_after - after).mean() - (y_before - before).mean()) / np.sqrt(
                variance
            )
            rejected += result.pvalue <= _LEVEL, 2 * norm.sf(abs(z)) <= _LEVEL
            truth = np.mean(after - expit(logit(after) + shift))
            covered += (
                result.bias_difference.low <= truth <= result.bias_difference.high
            )
        ours, known = (rejected / n_samples).tolist()
        rows.append(
            {
                "rows": n,
                "shift": shift,
                "change": ours,
                "z_test": known,
                "coverage_of_bias_at_.9": float(covered / n_samples),
            }
        )
    return rows


def monitor(n_samples):
    """Measure the share of runs of 20,000 stable rows with an alarm, and the median
    delay after a shift at row 5,000.
    """
    rows = []
    for shift in (0.0, 0.3, 0.6):
        names = (
            "e_process",
            "restarts",
            "known_shift_restarts",
            "e_detector_1e5",
            "known_shift_1e5",
            "windows",
        )
        alarms = {name: [] for name in names}
        for seed in range(n_samples):
            rng = np.random.default_rng(seed)
            scores = rng.beta(1, 3, 20_000)
            events = rng.random(20_000) < expit(
                logit(scores) + shift * (np.arange(20_000) >= 5000)
            )
            for name, options in {
                "e_process": {"confidence_level": 1 - _LEVEL},
                "restarts": {"confidence_level": 1 - _LEVEL, "restarts": True},
                "e_detector_1e5": {"average_run_length": 1e5},
            }.items():
                alarms[name].append(
                    CalibrationMonitor(**options).fit(scores, events).alarm_row_
                )
            alarms["windows"].append(_first_window(scores, events))
            ratios = _known_ratios(scores, events, shift or 0.3)
            alarms["known_shift_1e5"].append(_first_alarm(ratios, 1.0, 0.0, 1e5))
            stakes = -np.diff(np.log(10) / np.log(10 + np.arange(20_001.0)))
            alarms["known_shift_restarts"].append(
                _first_alarm(ratios, stakes, 1 - np.cumsum(stakes), 1 / _LEVEL)
            )
        row = {"shift": shift}
        for name, found in alarms.items():
            if shift == 0:
                row[name] = float(np.mean([one is not None for one in found]))
            else:
                late = [
                    np.inf if one is None or one < 5000 else one - 5000 for one in found
                ]
                row[name] = float(np.median(late))
        rows.append(row)
    return rows


def _first_window(scores, events):
    """Return the last row of the first window of 500 rows for which the test of
    calibration rejects.
    """
    for start in range(0, len(scores), _WINDOW):
        rows = slice(start, start + _WINDOW)
        if (
            calibration_test(events[rows], scores[rows], method="spiegelhalter").pvalue
            <= _LEVEL
        ):
            return start + _WINDOW - 1
    return None


def _known_ratios(scores, events, shift):
    """Return the log likelihood ratios of a bet that knows the shift."""
    shifted = expit(logit(scores) + shift)
    return np.where(
        events, np.log(shifted / scores), np.log((1 - shifted) / (1 - scores))
    )


def _first_alarm(log_ratios, stakes, kept_back, threshold):
    """Return the first row at which bets that begin at each row, with their stakes,
    reach the threshold.
    """
    sums = np.cumsum(log_ratios)
    evidence = (
        np.exp(
            sums + np.logaddexp.accumulate(np.log(stakes) - np.append(0.0, sums[:-1]))
        )
        + kept_back
    )
    reached = np.flatnonzero(evidence >= threshold)
    return int(reached[0]) if len(reached) else None


def _rows_by_code(codes):
    return [codes == code for code in np.unique(codes)]


def _normal_pvalue(scores, events):
    return 2 * norm.sf(
        abs(events - scores.sum()) / np.sqrt(np.sum(scores * (1 - scores)))
    )


if __name__ == "__main__":
    sys.exit(main())
