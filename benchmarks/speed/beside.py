"""What costs more than what stands beside it: ``python -m benchmarks.speed.beside``
prints the processor time of jobs in one thread, and their ratios to their neighbours.

Each number is the smallest of several runs, job and neighbours in one process. Of two
versions run both, one after the other: the ratios can be compared, the times of a busy
machine cannot.
"""

import io
import subprocess
import sys
import time
import warnings
from functools import partial

import numpy as np
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from benchmarks.speed import floors, problems
from benchmarks.speed.costs import COSTS
from skcalib import (
    IsotonicCalibration,
    OnlineRecalibrator,
    RecalibratedClassifierCV,
    VennAbers,
    metrics,
)
from skcalib.displays import ReliabilityDisplay
from skcalib.export import to_sql, to_sql_table

__all__ = ["JOBS"]

_SECONDS = 0.5  # each job is repeated for this long, and three times at least


def seconds(run):
    """Return the least processor time of a run, after one that is not timed."""
    run()
    times = []
    while len(times) < 3 or sum(times) < _SECONDS:
        began = time.process_time()
        run()
        times.append(time.process_time() - began)
    return min(times)


def in_turns(runs):
    """Return the least processor time of each of some runs by name, which take turns: a
    machine that is busy for a while then slows all of them.
    """
    for run in runs.values():
        run()
    times = {name: [] for name in runs}
    ends = time.process_time() + _SECONDS * len(runs)
    while time.process_time() < ends or len(times[next(iter(times))]) < 3:
        for name, run in runs.items():
            began = time.process_time()
            run()
            times[name].append(time.process_time() - began)
    return {name: min(found) for name, found in times.items()}


def scores_of_models(recalibrated, X):
    """Return the scores that each model in a `RecalibratedClassifierCV` gives to X."""
    return [
        getattr(pair.estimator, pair.response_method)(X)
        for pair in recalibrated.calibrated_classifiers_
    ]


def forecasts():
    """Yield (job, seconds, neighbours by name) for 10,000 rows and for one row of three
    models: beside scikit-learn's default and a single model, and beside what is the
    least, the scores that the models of the folds and the model of all rows give.
    """
    X, y = make_classification(12_000, 20, n_informative=5, flip_y=0.1, random_state=0)
    models = {
        "logistic regression": LogisticRegression(),
        "boosted trees": HistGradientBoostingClassifier(max_iter=50, random_state=0),
        "forest": RandomForestClassifier(50, random_state=0),
    }
    for name, model in models.items():
        fitted = {
            "ours": RecalibratedClassifierCV(model),
            "ours, ensemble=False": RecalibratedClassifierCV(model, ensemble=False),
            "scikit-learn": CalibratedClassifierCV(model),
            "scikit-learn, ensemble=False": CalibratedClassifierCV(
                model, ensemble=False
            ),
            "model": model,
        }
        for each in fitted.values():
            each.fit(X[:2000], y[:2000])
        for n_rows in (10_000, 1):
            rows = X[2000 : 2000 + n_rows]
            runs = {
                key: partial(each.predict_proba, rows) for key, each in fitted.items()
            }
            runs["the scores of its models"] = partial(
                scores_of_models, fitted["ours"], rows
            )
            times = in_turns(runs)
            yield f"forecasts, {name}, {n_rows:,} rows", times.pop("ours"), times


def pictures():
    """Yield a reliability diagram of 100,000 samples beside scikit-learn's with a
    histogram, and beside Matplotlib alone with the same elements, not saved and saved.
    """
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.use("Agg")
    rng = np.random.default_rng(0)
    scores = rng.beta(1, 2, 100_000)
    y = rng.random(100_000) < scores**1.2

    def finished(figure, is_saved):
        if is_saved:
            figure.savefig(io.BytesIO())
        plt.close(figure)

    def ours(is_saved):
        finished(ReliabilityDisplay.from_predictions(y, scores).figure_, is_saved)

    def theirs(is_saved, **layout):
        figure, (ax, below) = plt.subplots(2, 1, height_ratios=(4, 1), **layout)
        CalibrationDisplay.from_predictions(
            y, scores, n_bins=15, strategy="quantile", ax=ax
        )
        ax.errorbar([0.2, 0.5, 0.8], [0.2, 0.5, 0.8], yerr=0.1, fmt="o")
        below.hist(scores, bins=50)
        finished(figure, is_saved)

    def bare(is_saved):
        finished(bare_diagram(y, scores, 16), is_saved)

    for is_saved in (False, True):
        name = "reliability diagram" + ", saved" * is_saved
        runs = {
            "ours": lambda s=is_saved: ours(s),
            "Matplotlib alone": lambda s=is_saved: bare(s),
            "scikit-learn and a histogram": lambda s=is_saved: theirs(s),
            "the same with our layout": lambda s=is_saved: theirs(
                s, layout="constrained"
            ),
        }
        times = in_turns(runs)
        yield name, times.pop("ours"), times


def bare_diagram(y, scores, n_bins):
    """Return the figure of a reliability diagram as ours, made with Matplotlib alone:
    bins with intervals, a consistency band, a diagonal, a title, a legend and a
    histogram, with limits by the normal distribution.
    """
    import matplotlib.pyplot as plt

    figure, (ax, below) = plt.subplots(
        2,
        sharex=True,
        height_ratios=(4, 1),
        figsize=(4.6, 5.9),
        dpi=100,
        layout="constrained",
    )
    bins = np.minimum((scores * n_bins).astype(np.intp), n_bins - 1)
    count = np.bincount(bins)
    mean = np.bincount(bins, weights=scores) / count
    frequency = np.bincount(bins, weights=y) / count
    ax.plot([0, 1], [0, 1], ":", color="0.3", label="perfect calibration")
    noise = 1.645 * np.sqrt(mean * (1 - mean) / count)
    ax.fill_between(
        mean, mean - noise, mean + noise, color="0.8", label="90 % consistency band"
    )
    half_width = 1.645 * np.sqrt(frequency * (1 - frequency) / count)
    ax.errorbar(
        mean, frequency, half_width, fmt="o-", ms=4, capsize=3, label="90 % interval"
    )
    error = np.abs(mean - frequency) @ count / len(y)
    ax.set_title(f"n = {len(y):,}\ncalibration error {100 * error:.2f} %", loc="left")
    ax.set_ylabel("Event frequency")
    below.stairs(*np.histogram(scores, 50), fill=True)
    below.set_xlabel("Predicted probability")
    below.set_ylabel("Rows")
    figure.legend(loc="outside lower center", ncols=3)
    return figure


def inference():
    """Yield intervals and tables of groups, each beside the plain error of the same
    data.
    """
    for job, beside in (
        ("calibration_error_interval", "calibration_error"),
        ("the same with clusters", "calibration_error_interval"),
        ("its interval", "marginal calibration_error"),
        ("kernel_calibration_error", "marginal calibration_error"),
        ("calibration_by_group", "groupwise_calibration_error"),
    ):
        times = in_turns({name: COSTS[name].make() for name in (job, beside)})
        yield f"{job}, {COSTS[job].data}", times[job], {beside: times[beside]}


def imports():
    """Yield the import of the package beside that of `sklearn.calibration`."""

    def of(modules):
        code = f"import time; a = time.process_time(); import {modules}"
        code += "; print(time.process_time() - a)"
        command = [sys.executable, "-c", code]
        found = [subprocess.check_output(command, text=True) for _ in range(4)]
        return min(map(float, found))

    beside = {"sklearn.calibration": of("sklearn.calibration")}
    yield "import skcalib", of("skcalib"), beside
    ours = of("sklearn.calibration, skcalib.recalibrated_classifier")
    yield "the same and RecalibratedClassifierCV", ours, beside


def step_maps():
    """Yield the SQL of maps of a million rows in DuckDB beside NumPy, and that of
    Venn-Abers beside isotonic regression, as expressions and as tables.
    """
    import duckdb

    rng = np.random.default_rng(0)
    scores = rng.random(4000)
    labels = rng.random(4000) < scores**1.3
    new = rng.random(1_000_000)
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute("CREATE TABLE given AS SELECT unnest(?) AS p", [new])
    of_isotonic = {}
    for recalibrator in (IsotonicCalibration(), VennAbers()):
        name = type(recalibrator).__name__
        recalibrator.fit(scores, labels)
        expression = to_sql(recalibrator, dialect="duckdb")
        create, join, value = to_sql_table(recalibrator, table=name, dialect="duckdb")
        connection.execute(create)
        queries = {
            "as an expression": f"SELECT SUM({expression}) FROM given",
            "as a table": f"SELECT SUM({value}) FROM given {join}",
        }
        in_numpy = seconds(lambda each=recalibrator: each.predict_proba(new))
        for form, query in queries.items():
            beside = {"NumPy": in_numpy}
            if form in of_isotonic:
                beside["IsotonicCalibration"] = of_isotonic[form]
            taken = seconds(lambda q=query: connection.execute(q).fetchall())
            of_isotonic.setdefault(form, taken)
            yield f"{name} {form}", taken, beside


def small_samples():
    """Yield errors and a test of 1,000 and 10,000 samples beside the least NumPy work,
    the look at the input included.
    """
    for n in (1_000, 10_000):
        problem = problems.binary(n)
        for function, floor in (
            (metrics.expected_calibration_error, floors.equal_width),
            (metrics.calibration_error, floors.equal_mass),
            (partial(metrics.calibration_test, random_state=0), floors.drawn_labels),
        ):
            name = getattr(function, "func", function).__name__
            least = seconds(lambda p=problem: floors.validated(p))
            least += seconds(lambda f=floor, p=problem: f(p))
            taken = seconds(lambda f=function, p=problem: f(p.labels, p.scores))
            yield f"{name}, {n:,} samples", taken, {"its floor": least}


def single_labels():
    """Yield the learning of 200 single rows beside that of a batch of them."""
    rng = np.random.default_rng(0)
    scores = rng.random(400)
    y = rng.random(400) < scores**2
    online = OnlineRecalibrator().fit(scores[:200], y[:200])

    def by_row():
        for k in range(200, 400):
            online.partial_fit(scores[k : k + 1], y[k : k + 1])

    batch = seconds(lambda: online.partial_fit(scores[200:], y[200:]))
    yield "200 labels one by one", seconds(by_row), {"in a batch": batch}


JOBS = {
    job.__name__: job
    for job in (
        inference,
        forecasts,
        pictures,
        imports,
        step_maps,
        small_samples,
        single_labels,
    )
}


def main(names):
    """Run some of the jobs, all if none is named, and print a line for each."""
    warnings.simplefilter("ignore")
    for name in names or JOBS:
        for what, taken, beside in JOBS[name]():
            line = f"{what:<46} {1000 * taken:9.2f} ms"
            for neighbour, of_neighbour in beside.items():
                line += f"; {taken / of_neighbour:.2f} of {neighbour}"
            print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
