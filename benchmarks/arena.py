"""Every recalibrator on many real experiments: ``python -m benchmarks.arena --data DIR``.

An experiment is one classifier on one data set: a calibration part to fit on and a test part. Scores are means over the
test rows; probabilities are clipped to [2^-52, 1 - 2^-52] before the logarithm, for every method alike. Intervals are
bootstrap intervals over *data sets*, since the models of one data set share its rows.
"""

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

import skcalib
from skcalib._links import clip_probability

# name -> constructor arguments; `binary` and `multiclass` say where a method takes part
_BINARY = {
    "TemperatureScaling": {},
    "PlattScaling": {},
    "BetaCalibration": {},
    "QuadraticScaling": {},
    "SplineCalibration": {},
    "VennAbers": {},
    "IsotonicCalibration": {},
    "HistogramBinning": {},
    "ScalingBinning": {},
    "StackedRecalibrator": {},
}
_MULTICLASS = {
    "TemperatureScaling": {},
    "EnsembleTemperatureScaling": {},
    "ClasswiseTemperatureScaling": {},
    "VectorScaling": {},
    "MatrixScaling": {},
    "DirichletCalibration": {},
    "PlattScaling": {},
    "BetaCalibration": {},
    "VennAbers": {},
    "IsotonicCalibration": {},
    "HistogramBinning": {},
    "ScalingBinning": {},
    "StackedRecalibrator": {},
}
_HARM_SHARE, _HARM_NATS = 0.01, 0.001


def main(argv=None):
    """Run the arena and print its tables; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.arena", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the real data (with arena/)")
    parser.add_argument("--kind", choices=("binary", "multiclass"), help="only these experiments")
    parser.add_argument("--methods", nargs="+", help="only these recalibrators")
    parser.add_argument("--every", type=int, default=1, help="only every n-th data set, for a quick look")
    parser.add_argument("--n-jobs", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print JSON in place of the tables")
    options = parser.parse_args(argv)
    report = {}
    for kind in [options.kind] if options.kind else ["binary", "multiclass"]:
        methods = _methods(kind, options.methods)
        results = run(load(options.data, kind)[:: options.every], methods, options.n_jobs)
        report[kind] = summarize(results)
        if not options.json:
            print_summary(kind, results, report[kind], sys.stdout)
    if options.json:
        json.dump(report, sys.stdout, indent=1)
    return 0


def load(data, kind):
    """Return the experiments as a list, by data set, of lists of (name, scores and labels of both parts)."""
    folder = np.load(data / "arena" / f"mini_arena_{kind}_dev.npz", allow_pickle=False)
    by_data_set = {}
    for key in folder.files:
        data_set, model, part = key.split("/")
        by_data_set.setdefault(data_set, {}).setdefault(model, {})[part] = folder[key]
    return [
        [(f"{data_set}/{model}", parts) for model, parts in models.items()] for data_set, models in by_data_set.items()
    ]


def run(data_sets, methods, n_jobs=1):
    """Return one dictionary an experiment: its names, sizes, and by method (log-loss, Brier score, seconds)."""
    experiments = [(name, parts) for models in data_sets for name, parts in models]
    return Parallel(n_jobs=n_jobs)(delayed(_one_experiment)(name, parts, methods) for name, parts in experiments)


def summarize(results):
    """Return by method: mean scores, ratios to the uncalibrated model, win rates, harm and seconds."""
    names = list(results[0]["scores"])
    scores = np.array([[result["scores"][name] for name in names] for result in results])
    base = scores[:, names.index("uncalibrated")]
    groups = np.array([result["name"].split("/")[0] for result in results])
    n_cal = np.array([result["n_cal"] for result in results])
    summary = {}
    for j, name in enumerate(names):
        harm = scores[:, j, 0] - base[:, 0]
        harmed = (harm > _HARM_SHARE * base[:, 0]) & (harm > _HARM_NATS)
        summary[name] = {
            "log_loss": scores[:, j, 0].mean(),
            "log_loss_ratio": scores[:, j, 0].mean() / base[:, 0].mean(),
            "brier": scores[:, j, 1].mean(),
            "brier_ratio": scores[:, j, 1].mean() / base[:, 1].mean(),
            "win_rate_log_loss": _win_rate(scores[:, :, 0], j),
            "win_rate_brier": _win_rate(scores[:, :, 1], j),
            "harmed": harmed.mean(),
            "worst_harm": harm.max(),
            "worst_harm_from_250_rows": harm[n_cal >= 250].max() if (n_cal >= 250).any() else 0.0,
            "seconds": scores[:, j, 2].sum(),
        }
    best = max(names, key=lambda name: summary[name]["win_rate_log_loss"])
    for j, name in enumerate(names):
        summary[name]["head_to_head"] = _head_to_head(scores[:, names.index(best), 0], scores[:, j, 0], groups)
    return {name: {key: _plain(value) for key, value in row.items()} for name, row in summary.items()}


def print_summary(kind, results, summary, out):
    """Print the table of one kind, the best win rate first."""
    rows = sorted(summary.items(), key=lambda item: -item[1]["win_rate_log_loss"])
    n_sets = len({result["name"].split("/")[0] for result in results})
    print(f"\n{kind}: {len(results)} experiments on {n_sets} data sets", file=out)
    header = ("log-loss", "ratio", "Brier", "ratio", "win rate", "win(Brier)", "harmed", "worst", "worst 250+", "s")
    print(f"{'method':<28}" + "".join(f"{title:>11}" for title in header) + f"  {rows[0][0]} wins against it", file=out)
    for name, row in rows:
        keys = ("log_loss", "log_loss_ratio", "brier", "brier_ratio", "win_rate_log_loss", "win_rate_brier", "harmed")
        figures = [row[key] for key in (*keys, "worst_harm", "worst_harm_from_250_rows")]
        share, low, high = row["head_to_head"]
        against = "" if name == rows[0][0] else f"  {share:.2f} ({low:.2f} to {high:.2f})"
        print(
            f"{name:<28}" + "".join(f"{value:11.4f}" for value in figures) + f"{row['seconds']:11.1f}{against}",
            file=out,
        )


def _methods(kind, wanted):
    """Return the recalibrators that exist, ready to clone."""
    table = _BINARY if kind == "binary" else _MULTICLASS
    names = [name for name in table if hasattr(skcalib, name) and (wanted is None or name in wanted)]
    return {name: getattr(skcalib, name)(**table[name]) for name in names}


def _one_experiment(name, parts, methods):
    probs, labels = parts["probs_test"].astype(np.float64), parts["labels_test"].astype(int)
    probs /= probs.sum(axis=1, keepdims=True)
    scores = {"uncalibrated": (*_scores(probs, labels), 0.0)}
    classes = np.arange(probs.shape[1])
    for method, recalibrator in methods.items():
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # all classes are named: some calibration parts miss one
            fitted = clone(recalibrator).set_params(classes=classes).fit(parts["probs_cal"], parts["labels_cal"])
            predicted = fitted.predict_proba(parts["probs_test"])
        scores[method] = (*_scores(predicted, labels), time.perf_counter() - start)
    return {"name": name, "n_cal": len(parts["labels_cal"]), "n_classes": len(classes), "scores": scores}


def _scores(probs, labels):
    """Return log-loss and Brier score."""
    p_true = clip_probability(probs)[np.arange(len(labels)), labels]
    brier = np.mean(np.sum(probs**2, axis=1) - 2 * probs[np.arange(len(labels)), labels] + 1)
    return float(-np.mean(np.log(p_true))), float(brier)


def _win_rate(losses, j):
    """Return the share of comparisons with the other methods that method j wins, a tie counting half."""
    others = np.delete(losses, j, axis=1)
    mine = losses[:, j : j + 1]
    return float(np.mean((mine < others) + 0.5 * (mine == others)))


def _head_to_head(mine, other, groups, n_resamples=1000):
    """Return the share of experiments that `mine` wins, with a 90 % bootstrap interval over data sets."""
    wins = (mine < other) + 0.5 * (mine == other)
    names, inverse = np.unique(groups, return_inverse=True)
    sums, counts = np.bincount(inverse, weights=wins), np.bincount(inverse)
    drawn = np.random.default_rng(0).integers(len(names), size=(n_resamples, len(names)))
    shares = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    return [wins.mean(), *np.quantile(shares, [0.05, 0.95])]


def _plain(value):
    return [float(item) for item in value] if isinstance(value, list) else float(value)


if __name__ == "__main__":
    sys.exit(main())
