"""What costs more than what stands beside it: ``python -m benchmarks.speed.beside``
prints the processor time of jobs in one thread, and their ratios to their neighbours.
A job that once was a cliff has its cost of then and its target beside them.

Each number is the smallest of several runs, job and neighbours in one process. Of two
versions run both, one after the other: the ratios can be compared, the times of a busy
machine cannot.
"""

import io
import os
import resource
import subprocess
import sys
import time
import warnings
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from benchmarks.speed import floors, problems
from benchmarks.speed.costs import COSTS
from benchmarks.speed.growth import GROWTH, seconds_of
from skcalib import (
    IsotonicCalibration,
    OnlineRecalibrator,
    RecalibratedClassifierCV,
    VennAbers,
    metrics,
)
from skcalib.displays import ReliabilityDisplay
from skcalib.export import to_sql, to_sql_table

__all__ = ["CLIFFS", "JOBS", "Cliff", "line"]

_SECONDS = 0.5  # each job is repeated for this long, and three times at least


class Cliff(NamedTuple):
    """A job that cost far more than what stands beside it.

    Parameters
    ----------
    before : str
        What it cost then.
    most_seconds : float, default=None
        The target for its processor time.
    most_times : dict, default={}
        The targets for its ratios, by neighbour.
    """

    before: str
    most_seconds: float | None = None
    most_times: dict = {}  # noqa: RUF012


_GROUPS = "200,000 samples in 1,000 groups"
CLIFFS = {
    "the same with few clusters, 20,000 samples in 100 clusters": Cliff("10.5 s"),
    "the same with clusters, 1,000,000 samples in 10,000 clusters": Cliff(
        "no end in 45 s with 200,000", 3.0
    ),
    "its interval, 2,000 samples, 1,000 classes": Cliff(
        "10.9 s", most_times={"marginal calibration_error": 4}
    ),
    "kernel_calibration_error, 2,000 samples, 1,000 classes": Cliff(
        "5.3 s", most_times={"marginal calibration_error": 10}
    ),
    f"calibration_by_group, {_GROUPS}": Cliff("5.9 s"),
    "calibration_by_group, 100,000 groups": Cliff("", 10.0),
    **{
        f"forecasts, {model}, 10,000 rows": Cliff(
            before,
            most_times={"scikit-learn": 1.3, "scikit-learn, ensemble=False": 3},
        )
        for model, before in (
            ("logistic regression", "40 ms"),
            ("boosted trees", ""),
            ("forest", ""),
        )
    },
    **{
        f"forecasts, {model}, 1 rows": Cliff(before, most_times={"scikit-learn": 1})
        for model, before in (
            ("logistic regression", ""),
            ("boosted trees", "18 ms"),
            ("forest", ""),
        )
    },
    "reliability diagram": Cliff(
        "330 ms", most_times={"scikit-learn and a histogram": 1.5}
    ),
    "reliability diagram, saved": Cliff("920 ms", most_times={"Matplotlib alone": 1.3}),
    "import skcalib": Cliff(
        "1.15 to 1.29 of sklearn.calibration", most_times={"sklearn.calibration": 1.1}
    ),
    "IsotonicCalibration as an expression": Cliff("200 ms"),
    "VennAbers as an expression": Cliff(
        "2,100 ms", most_times={"IsotonicCalibration": 3}
    ),
    **{
        f"{name}, {n} samples": Cliff(before, most_times={"its floor": 4})
        for name, n, before in (
            ("expected_calibration_error", "1,000", ""),
            ("calibration_error", "1,000", ""),
            ("calibration_test", "1,000", ""),
            ("expected_calibration_error", "10,000", ""),
            ("calibration_error", "10,000", "0.87 ms"),
            ("calibration_test", "10,000", ""),
        )
    },
    "200 labels one by one": Cliff("138 ms", 0.02),
    "demo": Cliff("23 to 44 s", 10.0),
    "report of 3,000 rows": Cliff("8 s"),
    "report of 10,000 rows": Cliff("15 s", 6.0),
}


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


def environment():
    """Return the environment of an interpreter that keeps the compiled modules, as one
    with an installed package has them: compiling ours takes a good part of a report.
    """
    found = dict(os.environ)
    found.pop("PYTHONDONTWRITEBYTECODE", None)
    return found


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
        ("the same with few clusters", "calibration_error"),
        ("its interval", "marginal calibration_error"),
        ("kernel_calibration_error", "marginal calibration_error"),
        ("calibration_by_group", "groupwise_calibration_error"),
    ):
        times = in_turns({name: COSTS[name].make() for name in (job, beside)})
        yield f"{job}, {COSTS[job].data}", times[job], {beside: times[beside]}
    # Single runs: each takes many seconds.
    times = {}
    for name in ("calibration_by_group", "groupwise_calibration_error"):
        times[name] = seconds_of(GROWTH[f"{name}, groups"].make(100_000))
    taken = times.pop("calibration_by_group")
    yield "calibration_by_group, 100,000 groups", taken, times


def imports():
    """Yield the import of the package beside that of `sklearn.calibration`."""

    def of(modules):
        code = f"import time; a = time.process_time(); import {modules}"
        code += "; print(time.process_time() - a)"
        command = [sys.executable, "-c", code]
        found = [
            subprocess.check_output(command, text=True, env=environment())
            for _ in range(4)
        ]
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


def commands():
    """Yield the commands of a terminal, the start of the interpreter included."""

    def once(arguments):
        began = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, *arguments]
        subprocess.run(command, check=True, capture_output=True, env=environment())
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return ended.ru_utime - began.ru_utime + ended.ru_stime - began.ru_stime

    def of(*arguments):
        return min(once(arguments) for _ in range(2))  # the first may compile

    yield "demo", of("-m", "skcalib", "demo"), {}
    with TemporaryDirectory() as folder:
        for n in (3_000, 10_000):
            problem = problems.binary(n)
            file = Path(folder, f"{n}.csv")
            columns = np.column_stack([problem.labels, problem.scores])
            np.savetxt(file, columns, delimiter=",", header="y,p", comments="")
            page = ("--label", "y", "--score", "p", "-o", f"{file}.html")
            taken = of("-m", "skcalib", "report", str(file), *page)
            yield f"report of {n:,} rows", taken, {}


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
        commands,
    )
}


def line(what, taken, beside):
    """Return the line of a job: its processor time in seconds, `taken`, its ratios to
    that of each neighbour in `beside`, and, of a cliff, what it was and its targets.
    """
    cliff = CLIFFS.get(what, Cliff(""))
    shown = f"{what:<46} {1000 * taken:9.2f} ms"
    if cliff.before:
        shown += f" (before: {cliff.before})"
    if cliff.most_seconds is not None:
        verdict = "met" if taken <= cliff.most_seconds else "MISSED"
        shown += f"; at most {1000 * cliff.most_seconds:g} ms: {verdict}"
    for neighbour, of_neighbour in beside.items():
        times = taken / of_neighbour
        shown += f"; {times:.2f} of {neighbour}"
        if neighbour in cliff.most_times:
            most = cliff.most_times[neighbour]
            verdict = "met" if times <= most else "MISSED"
            shown += f" (at most {most:g}: {verdict})"
    return shown


def main(names):
    """Run some of the jobs, all if none is named, and print a line for each."""
    warnings.simplefilter("ignore")
    not_measured = set() if names else set(CLIFFS)
    for name in names or JOBS:
        for job in JOBS[name]():
            print(line(*job), flush=True)
            not_measured.discard(job[0])
    if not_measured:
        print("not measured:", ", ".join(sorted(not_measured)))


if __name__ == "__main__":
    main(sys.argv[1:])
