"""Random files, exported maps and monitored streams, each against a plain computation
on the same rows.

``python -m benchmarks.checks.fuzz --seconds 120 --seed 1`` takes turns: `scan` (files
of several types, nulls, folders and odd names against NumPy), `export` (SQL, SQL
tables, ONNX, JavaScript and JSON against `predict_proba`, at knots, 0, 1, -0.0,
denormals, NULL and what is no score) and `monitoring` (batches of one row or class,
groups that come and go, JSON and pickle in the middle, against one batch and a plain
loop). It prints how many comparisons were made of each kind and every one that failed.
``--only export`` chooses some. For tables in engines see ``python -m
benchmarks.checks.fuzz_engines``.
"""

import argparse
import json
import pickle
import re
import subprocess
import tempfile
import time
import traceback
import warnings
from collections import Counter
from itertools import product
from pathlib import Path

import duckdb
import numpy as np
import onnxruntime
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, LinearSVC

import skcalib
from benchmarks.checks.fuzz_engines import shape
from skcalib._input.classifier_scores import classifier_scores
from skcalib.binning import EqualMass, EqualWidth, UniqueScores
from skcalib.engines import PredictionTable, scan
from skcalib.export import (
    from_dict,
    to_dict,
    to_javascript,
    to_onnx,
    to_sql,
    to_sql_table,
)
from skcalib.metrics import BinStatistics
from skcalib.monitoring import CalibrationMonitor, GroupMonitors

ODD = [
    0.0,
    -0.0,
    1.0,
    5e-324,
    1e-310,
    2.2e-308,
    1e-300,
    2.0**-54,
    0.1,
    0.5,
    np.nextafter(0.5, 1),
    1 - 2.0**-53,
]
NO_SCORES = [
    None,
    float("nan"),
    -5e-324,
    -0.1,
    np.nextafter(1, 2),
    2.0,
    float("inf"),
    float("-inf"),
]
TWO_CLASSES = [
    skcalib.PlattScaling(),
    skcalib.PlattScaling(clip=None),
    skcalib.BetaCalibration(),
    skcalib.QuadraticScaling(),
    skcalib.TemperatureScaling(),
    skcalib.SplineCalibration(),
    skcalib.IsotonicCalibration(),
    skcalib.IsotonicCalibration(centered=True),
    skcalib.HistogramBinning(),
    skcalib.HistogramBinning(UniqueScores()),
    skcalib.HistogramBinning(EqualWidth(7), smoothing=1.0),
    skcalib.UniformMassBinning(5),
    skcalib.ScalingBinning(binning=6),
    skcalib.VennAbers(),
    skcalib.StackedRecalibrator(
        [skcalib.PlattScaling(), skcalib.IsotonicCalibration()], cv=2
    ),
]
MANY_CLASSES = [
    skcalib.TemperatureScaling(),
    skcalib.EnsembleTemperatureScaling(),
    skcalib.ClasswiseTemperatureScaling(),
    skcalib.VectorScaling(),
    skcalib.MatrixScaling(),
    skcalib.DirichletCalibration(),
    skcalib.PlattScaling(),
    skcalib.HistogramBinning(5),
    skcalib.IsotonicCalibration(),
    skcalib.GroupwiseRecalibrator(skcalib.TemperatureScaling(), min_group_size=20),
]


class Refused(Exception):
    """The library said why it does not do this."""


def main(argv=None):
    """Take turns until the time is over; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=list(TARGETS), choices=TARGETS)
    options = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    tried, failed, started, number = Counter(), [], time.monotonic(), 0
    while time.monotonic() - started < options.seconds:
        name = options.only[number % len(options.only)]
        number += 1
        try:
            for job in TARGETS[name](np.random.default_rng((options.seed, number))):
                tried[job] += 1
        except Refused as error:
            tried[f"{name}: refused, {error}"] += 1
        except Exception as error:  # every failure is reported, of whatever kind
            where = traceback.extract_tb(error.__traceback__)
            text = " ".join(str(error).split())[:400]
            failed.append(
                f"FAILED {name} {number} {type(error).__name__}: {text}"
                f" ({where[-1].name}, {where[1].line})"
            )
    print(
        f"{number} cases in {time.monotonic() - started:.0f} s, {len(failed)} failed"
        f" (seed {options.seed})"
    )
    for job, count in sorted(tried.items()):
        print(f"  {job}: {count}")
    print(*failed, sep="\n")
    return bool(failed)


# --- scan -----------------------------------------------------------------------------


def of_files(rng):
    """Write files of random types and compare what is read with the rows; yield the
    names of the comparisons.
    """
    is_parquet, n_files = rng.random() < 0.6, int(rng.integers(1, 4))
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / str(
            rng.choice(["plain", "a b", "y=7", "it's", "log[1]", "day=2024-01-01"])
        )
        parts = []
        for k in range(n_files):
            n = int(rng.integers(0 if is_parquet and n_files > 1 else 1, 300))
            score = shape(rng, n)
            score[rng.random(n) < 0.05] = -0.0
            columns = {
                "p": score,
                "y": (rng.random(n) < score).astype(np.int64),
                "g": rng.choice(["01", "1", "é'"], n),
            }
            if k and rng.random() < 0.3:  # all scores 0 and 1, as integers
                columns["p"] = columns["y"].copy()
            missing = rng.random(n) < 0.05 * (rng.random() < 0.5)
            write(
                rng,
                root / f"{rng.choice(['log', 'log[1]', 'a*'])}{k}",
                columns,
                missing,
                is_parquet,
            )
            parts.append({name: values[~missing] for name, values in columns.items()})
        pattern = str(root).replace("[", "[[]") + (
            "/*.parquet" if is_parquet else "/*.csv*"
        )
        path = pattern if n_files > 1 or rng.random() < 0.5 else next(root.iterdir())
        rows = {
            name: np.concatenate([part[name] for part in parts])
            for name in ("p", "y", "g")
        }
        if len(rows["p"]) == 0:
            raise Refused("no rows")
        by = "g" if rng.random() < 0.5 else None
        table = PredictionTable(
            scan(path), label="y", score="p", by=by, on_invalid="drop"
        )
        yield from same_rows(rng, table, rows, by, "parquet" if is_parquet else "csv")


def write(rng, path, columns, missing, is_parquet):
    """Write a file with the columns in random order and of random types; scores that
    are missing are null or NaN.
    """
    path.parent.mkdir(exist_ok=True)
    score = columns["p"].astype(np.float64)
    exact = np.array_equal(score.astype(np.float32), score)
    kinds = (
        [pa.float64()]
        + [pa.float32()] * exact
        + [pa.int8()] * np.array_equal(score.astype(np.int8), score)
    )
    nan = is_parquet and rng.random() < 0.5
    if nan:
        scores = pa.array(np.where(missing, np.nan, score))
    else:
        scores = pa.array(score, mask=missing).cast(kinds[rng.integers(len(kinds))])
    label = pa.array(columns["y"]).cast(
        [pa.int64(), pa.int8(), pa.bool_(), pa.float64()][rng.integers(4)]
    )
    arrays = {
        "p": scores,
        "y": label,
        "g": pa.array(columns["g"]),
        "other": pa.array(np.arange(len(score))),
    }
    table = pa.table({name: arrays[name] for name in rng.permutation(list(arrays))})
    if is_parquet:
        pq.write_table(
            table,
            path.with_name(f"{path.name}.parquet"),
            row_group_size=int(rng.integers(1, 200)),
        )
        return
    label = pa.array(columns["y"])  # text has no types
    table = table.set_column(table.column_names.index("y"), "y", label)
    pyarrow.csv.write_csv(table, path.with_name(f"{path.name}.csv"))


def same_rows(rng, table, rows, by, kind):
    """Compare sums of bins by segment with NumPy's."""
    strategy = (
        EqualWidth(int(rng.integers(1, 20))),
        EqualMass(int(rng.integers(1, 9))),
        UniqueScores(),
    )[rng.integers(3)]
    found = table.bin_statistics(strategy)
    found = found if by else {None: found}
    texts = {str(name): one for name, one in found.items()}
    segments = set(rows["g"].tolist()) if by else {"None"}
    if set(texts) != segments:
        raise AssertionError(f"segments {sorted(texts)}, expected {sorted(segments)}")
    for name in segments:
        own = rows["g"] == name if by else np.full(len(rows["p"]), True)
        p, y = rows["p"][own].astype(float), rows["y"][own]
        wanted = BinStatistics.from_predictions(y, p, strategy.bin_edges(p, y == 1))
        for field in (
            "edges",
            "count",
            "weighted_label",
            "weighted_score",
            "weighted_score_squared",
        ):
            np.testing.assert_allclose(
                getattr(texts[name], field),
                getattr(wanted, field),
                rtol=1e-12,
                atol=1e-12,
            )
        yield f"scan: {kind}, {type(strategy).__name__}"


# --- export ---------------------------------------------------------------------------


def of_exports(rng):
    """Fit a random recalibrator and compare each way out with `predict_proba`; yield
    the names of the comparisons.
    """
    yield from of_two_classes(rng) if rng.random() < 0.7 else of_many_classes(rng)


def fit(recalibrator, scores, y, **options):
    """Return the recalibrator, fitted, or raise what it says."""
    try:
        return clone(recalibrator).set_params(**options).fit(scores, y)
    except ValueError as error:
        raise Refused(f"{type(recalibrator).__name__}: {str(error)[:60]}") from None


def of_two_classes(rng):
    recalibrator = TWO_CLASSES[rng.integers(len(TWO_CLASSES))]
    n, is_logit = int(rng.integers(20, 400)), rng.random() < 0.25
    scores = shape(rng, n)
    y = rng.random(n) < (scores if rng.random() < 0.7 else scores**2)
    if is_logit:
        scores = np.clip(
            logit(np.clip(scores, 1e-300, 1 - 2.0**-53)) + rng.normal(0, 0.1, n),
            -700,
            700,
        )
    fitted = fit(
        recalibrator,
        scores,
        y,
        input="logit" if is_logit else "probability",
        classes=[False, True],
    )
    breaks = [
        np.ravel(getattr(fitted, name))
        for name in ("bin_edges_", "score_knots_")
        if hasattr(fitted, name)
    ]
    new = np.concatenate(
        [scores[:30], *breaks, [-40.0, 800.0, 0.0, -0.0, 1e100] if is_logit else ODD]
    )
    new = new[np.isfinite(new)]
    new = np.concatenate((new, np.nextafter(new, -1e300), np.nextafter(new, 1e300)))
    new = np.clip(new, -1e100, 1e100) if is_logit else new[(new >= 0) & (new <= 1)]
    bad = (
        [None, float("nan"), float("inf"), float("-inf"), 1.1e100]
        if is_logit
        else NO_SCORES
    )
    given, wanted = (
        [*new.tolist(), *bad],
        np.append(fitted.predict_proba(new)[:, 1], np.full(len(bad), np.nan)),
    )
    for way in two_class_ways(fitted):
        found = way(fitted, given)
        # which takes what is beyond 0 or 1 by rounding, 1e-6 at most
        if way is in_onnx:
            is_near = [
                value is not None and -1e-6 < value < 1 + 1e-6 for value in given
            ]
            found = np.where(np.isnan(wanted) & is_near, np.nan, found)
        same_forecasts(found, wanted, given, f"{fitted!r} in {way.__name__}")
        yield f"export: {way.__name__}"
    back = from_dict(json.loads(json.dumps(to_dict(fitted))))
    np.testing.assert_array_equal(back.predict_proba(new), fitted.predict_proba(new))
    yield "export: JSON"


def two_class_ways(fitted):
    pieces = (
        skcalib.IsotonicCalibration,
        skcalib.HistogramBinning,
        skcalib.UniformMassBinning,
        skcalib.VennAbers,
    )
    return [in_sql, in_onnx, in_javascript] + [in_sql_table] * isinstance(
        fitted, pieces
    )


def same_forecasts(found, wanted, given, name):
    off = ~np.isclose(found, wanted, rtol=0, atol=1e-12, equal_nan=True)
    if np.any(off):
        row = int(np.argmax(off.reshape(len(off), -1).any(axis=1)))
        raise AssertionError(
            f"{name}: {given[row]!r} gives {found[row]!r}, expected {wanted[row]!r};"
            f" {off.sum()} rows"
        )


def in_duckdb(columns, select):
    connection = duckdb.connect()
    connection.register("given", pa.table({"n": range(len(columns["p"])), **columns}))
    connection.execute("CREATE TABLE t AS SELECT * FROM given")
    found = connection.sql(select(connection)).fetchall()
    return np.array(
        [[np.nan if value is None else value for value in row] for row in found],
        dtype=float,
    )


def in_sql(fitted, given):
    columns = {"p": pa.array(given, pa.float64())}
    return in_duckdb(
        columns,
        lambda _: f"SELECT {to_sql(fitted, dialect='duckdb')} FROM t ORDER BY n",
    )[:, 0]


def in_sql_table(fitted, given):
    texts = to_sql_table(fitted, dialect="duckdb")

    def select(connection):
        connection.execute(texts.create)
        return f"SELECT {texts.expression} FROM t {texts.join} ORDER BY n"

    return in_duckdb({"p": pa.array(given, pa.float64())}, select)[:, 0]


def in_onnx(fitted, given):
    rows = np.array(
        [
            [np.nan if value is None else value for value in np.atleast_1d(row)]
            for row in given
        ],
        dtype=float,
    )
    found = run_onnx(fitted, rows)
    return found[:, 1] if rows.shape[1] == 1 else found


def run_onnx(fitted, rows):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    model = to_onnx(fitted, dtype="float64").SerializeToString()
    session = onnxruntime.InferenceSession(
        model, options, providers=["CPUExecutionProvider"]
    )
    return session.run(["calibrated"], {"scores": rows})[0]


def in_javascript(fitted, given):
    """Return what node computes; numbers are written so that they read back exactly."""
    rows = json.dumps(given)  # JavaScript has NaN and Infinity, too
    text = "JSON.stringify(rows.map(r => [calibrate(r)].flat()))"
    program = f"{to_javascript(fitted)}\nconst rows = {rows};\nconsole.log({text});"
    done = subprocess.run(
        ["node", "-"], input=program, capture_output=True, text=True, check=True
    )
    found = np.array(
        [[np.nan if v is None else v for v in row] for row in json.loads(done.stdout)],
        dtype=float,
    )
    return found[:, 0] if found.shape[1] == 1 else found


def of_many_classes(rng):
    recalibrator = MANY_CLASSES[rng.integers(len(MANY_CLASSES))]
    n, n_classes, is_logit = (
        int(rng.integers(60, 300)),
        int(rng.integers(3, 7)),
        rng.random() < 0.5,
    )
    logits = rng.normal(size=(n, n_classes)) * rng.choice([0.5, 2, 30, 300])
    y = (logits / 2 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    new = np.concatenate(
        (logits[:40], np.zeros((1, n_classes)), 1000 * np.eye(n_classes))
    )
    if is_logit:
        scores = logits
        if rng.random() < 0.4:  # ties
            scores = np.round(scores)
        impossible = new[:15].copy()
        impossible[:5, 0] = -np.inf
        impossible[5:10, 1] = -1e4 - 1e3 * np.abs(new).max()
        impossible[10:] += rng.normal(size=(len(impossible[10:]), 1))
    else:
        scores, new = (
            np.exp(one - one.max(axis=1, keepdims=True)) for one in (logits, new)
        )
        scores, new = (
            scores / scores.sum(axis=1, keepdims=True),
            new / new.sum(axis=1, keepdims=True),
        )
        impossible = np.eye(n_classes)
        impossible[0, :2] = 1 - 2.0**-53, 5e-324
    base = (
        recalibrator.recalibrator
        if hasattr(recalibrator, "recalibrator")
        else recalibrator
    )
    name = "recalibrator__input" if base is not recalibrator else "input"
    if type(base) is skcalib.DirichletCalibration:
        impossible = new[:1]
    fitted = fit(
        recalibrator, scores, y, **{name: "logit" if is_logit else "probability"}
    )
    try:
        wanted = fitted.predict_proba(np.concatenate((new, impossible)))
        new = np.concatenate((new, impossible))
    except ValueError:  # one-vs-rest methods of logits take finite ones
        wanted = fitted.predict_proba(new)
    bad = np.full((2, n_classes), 1 / n_classes)
    bad[0, 0], bad[1, :] = np.nan, 2.0 if not is_logit else np.nan
    given, wanted = (
        np.concatenate((new, bad)),
        np.concatenate((wanted, np.full(bad.shape, np.nan))),
    )
    title = type(fitted).__name__
    same_forecasts(in_onnx(fitted, given), wanted, given, f"{fitted!r} in ONNX")
    yield f"export: {n_classes} classes, in_onnx"
    same_forecasts(
        in_javascript(fitted, given.tolist()),
        wanted,
        given,
        f"{fitted!r} in JavaScript",
    )
    yield f"export: {n_classes} classes, in_javascript"
    finite = np.isfinite(given).all(axis=1) | np.isnan(given).any(axis=1)
    columns = {"p": pa.array(np.zeros(len(given)))}
    columns |= {
        f"p{k}": pa.array(given[:, k], from_pandas=bool(rng.integers(2)))
        for k in range(n_classes)
    }
    if title != "GroupwiseRecalibrator":
        texts = to_sql(
            fitted, score=[f"p{k}" for k in range(n_classes)], dialect="duckdb"
        )
        found = in_duckdb(
            columns, lambda _: f"SELECT {', '.join(texts)} FROM t ORDER BY n"
        )
        expected = wanted[finite]
        # A guard of the spread: the text was too long for impossible classes.
        if re.search(r"GREATEST\(([^+*]*)\)-LEAST\(\1\)<=", texts[0][:10_000]):
            expected[np.ptp(given[finite], axis=1) > 700] = np.nan
        same_forecasts(found[finite], expected, given[finite], f"{fitted!r} in SQL")
        yield f"export: {n_classes} classes, in_sql"
    back = from_dict(json.loads(json.dumps(to_dict(fitted))))
    np.testing.assert_array_equal(back.predict_proba(new), fitted.predict_proba(new))
    yield f"export: {n_classes} classes, JSON"


# --- monitoring -----------------------------------------------------------------------


def of_streams(rng):
    """Show rows to monitors in random batches and compare with all at once; yield the
    names of the comparisons.
    """
    n = int(rng.integers(1, 1500))
    scores = shape(rng, n)
    changed = np.arange(n) >= rng.integers(n + 1)
    y = rng.random(n) < np.where(
        changed & (rng.random() < 0.7),
        expit(logit(np.clip(scores, 1e-9, 1 - 1e-9)) + 1),
        scores,
    )
    if rng.random() < 0.15:
        y[:] = rng.random() < 0.5  # one class
    kinds = (
        {},
        {"restarts": True},
        {"average_run_length": float(rng.choice([20, 1000]))},
        {"confidence_level": 0.9},
    )
    options = kinds[rng.integers(len(kinds))]
    cuts = np.unique(np.append(rng.integers(0, n + 1, rng.integers(0, 12)), [0, n]))
    if n < 200 and rng.random() < 0.3:
        cuts = np.arange(n + 1)
    groups = np.array([f"g{k}" for k in rng.integers(0, 5, n)], dtype=object)
    groups[: n // 3] = groups[0]  # others come later
    whole = CalibrationMonitor(**options).fit(scores, y)
    parts = CalibrationMonitor(**options)
    for start, stop in zip(cuts[:-1], cuts[1:], strict=True):
        parts = passed_on(rng, parts.partial_fit(scores[start:stop], y[start:stop]))
    same_monitor(parts, whole, "batches")
    yield "monitoring: batches, JSON and pickle"
    if not options.keys() & {"restarts", "average_run_length"}:
        of_loop(whole, scores, y)
        yield "monitoring: plain loop"
    if "average_run_length" not in options:
        yield from of_groups(rng, options, scores, y, groups, cuts)


def passed_on(rng, monitor):
    """Return the monitor as it comes back from a file, or as it is."""
    way = rng.integers(4)
    if way == 0:
        return pickle.loads(pickle.dumps(monitor))
    return from_dict(json.loads(json.dumps(to_dict(monitor)))) if way == 1 else monitor


def same_monitor(found, wanted, name):
    for field in ("n_rows_", "alarm_", "alarm_row_", "change_row_"):
        one, other = getattr(found, field), getattr(wanted, field)
        # bets that tie to rounding
        if one != other and not (field == "change_row_" and one is not None):
            raise AssertionError(f"{name}: {field} is {one}, expected {other}")
    np.testing.assert_allclose(
        np.log(found.e_value_),
        np.log(wanted.e_value_),
        rtol=1e-9,
        atol=1e-9,
        err_msg=name,
    )


def of_loop(monitor, scores, y):
    """Compare with bets in a plain loop over the rows."""
    clipped = np.clip(scores, 2.0**-52, 1 - 2.0**-52)  # as recalibrators clip
    z, sign = logit(clipped), np.where(y, 1, -1)
    total, alarm, row = [], None, np.arange(len(z))
    for slope, shift in product(
        (1.0, 0.6, 1.5), (0, 0.13, -0.13, 0.4, -0.4, 1.2, -1.2)
    ):
        if (slope, shift) != (1.0, 0):
            log_q, log_p = (
                -np.logaddexp(0, -sign * (slope * z + shift)),
                -np.logaddexp(0, -sign * z),
            )
            total.append(np.cumsum(log_q - log_p))
    log_e = np.logaddexp.reduce(np.array(total), axis=0) - np.log(20)
    over = row[log_e >= np.log(monitor.threshold_)]
    alarm = int(over[0]) if len(over) else None
    if (
        alarm != monitor.alarm_row_
        and np.abs(log_e - np.log(monitor.threshold_)).min() > 1e-9
    ):
        raise AssertionError(f"alarm_row_ is {monitor.alarm_row_}, expected {alarm}")
    np.testing.assert_allclose(
        np.log(monitor.e_value_),
        min(log_e[-1], np.log(np.finfo(float).max)),
        rtol=1e-9,
        atol=1e-9,
    )


def of_groups(rng, options, scores, y, groups, cuts):
    """Show groups that come and go: in batches, whose rows are mixed anew, with files
    in the middle, and at once.
    """
    level = {"confidence_level": options.get("confidence_level", 0.99)}
    whole = GroupMonitors(CalibrationMonitor(**options), **level).fit(scores, y, groups)
    parts = GroupMonitors(CalibrationMonitor(**options), **level)
    for start, stop in zip(cuts[:-1], cuts[1:], strict=True):
        rows = np.arange(start, stop)
        known = getattr(parts, "monitors_", {})
        # their order does not name them
        if all(group in known for group in groups[rows]):
            rows = rows[np.argsort(groups[rows], kind="stable")]
        parts = passed_on(rng, parts.partial_fit(scores[rows], y[rows], groups[rows]))
    if list(parts.monitors_) != list(whole.monitors_) or parts.alarm_ != whole.alarm_:
        raise AssertionError(
            f"groups {list(parts.monitors_)}, expected {list(whole.monitors_)}, or"
            " another alarm"
        )
    for k, (name, monitor) in enumerate(parts.monitors_.items(), 1):
        same_monitor(monitor, whole.monitors_[name], f"group {name}")
        share = 6 / (np.pi * k) ** 2 * (1 - level["confidence_level"])
        own = CalibrationMonitor(**options | {"confidence_level": 1 - share}).fit(
            scores[groups == name], y[groups == name]
        )
        same_monitor(monitor, own, f"group {name} alone")
        yield "monitoring: groups"


# --- classifiers ----------------------------------------------------------------------


def of_classifiers(rng):
    """Ask a random classifier for scores in a random container and type; compare with
    those as they are.
    """
    n_classes = int(rng.integers(2, 6))
    X = rng.normal(size=(int(rng.integers(60, 200)), 4))
    y = X @ rng.normal(size=(4, n_classes)) + rng.gumbel(size=(len(X), n_classes))
    y = y.argmax(axis=1)
    if len(np.unique(y)) < n_classes:
        raise Refused("a class without rows")
    model = CLASSIFIERS[rng.integers(len(CLASSIFIERS))]
    fitted = clone(model).fit(X, y)
    method = "predict_proba"
    if not hasattr(fitted, method) or (
        hasattr(fitted, "decision_function") and rng.random() < 0.5
    ):
        method = "decision_function"
    name = str(rng.choice(list(CONTAINERS)))
    changed = Answering(fitted, method, CONTAINERS[name])
    found = classifier_scores(changed, X, fitted.classes_, method, check_columns=True)
    wanted = classifier_scores(fitted, X, fitted.classes_, method, check_columns=True)
    off = (
        2e-2 * (1 + np.abs(wanted))
        if name == "float16"
        else 1e-6 * (1 + np.abs(wanted))
    )
    if found.shape != wanted.shape or (np.abs(found - wanted) > off).any():
        raise AssertionError(f"{model!r}.{method} as {name}")
    yield f"classifiers: {method}, {name}"


class Answering:
    """A fitted classifier whose answers come in another container."""

    def __init__(self, model, method, change):
        self.classes_, self.predict = model.classes_, model.predict
        answer = getattr(model, method)
        setattr(self, method, lambda X: change(answer(X)))


CLASSIFIERS = [
    LogisticRegression(),
    GaussianNB(),
    RandomForestClassifier(5, random_state=0),
    SVC(),
    LinearSVC(),
    SGDClassifier(random_state=0),
    KNeighborsClassifier(3),
]
CONTAINERS = {
    "float64": np.asarray,
    "float32": lambda scores: scores.astype(np.float32),
    "float16": lambda scores: scores.astype(np.float16),
    "object": lambda scores: scores.astype(object),
    "list": lambda scores: scores.tolist(),
    "masked": np.ma.masked_array,
    "Fortran order": np.asfortranarray,
    "big-endian": lambda scores: scores.astype(">f8"),
    "arrow": lambda scores: (
        pa.array(scores)
        if scores.ndim == 1
        else pa.table({f"p{k}": column for k, column in enumerate(scores.T)})
    ),
}

TARGETS = {
    "scan": of_files,
    "export": of_exports,
    "monitoring": of_streams,
    "classifiers": of_classifiers,
}


if __name__ == "__main__":
    raise SystemExit(main())
