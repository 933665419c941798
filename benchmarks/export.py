"""Size and speed of each export format, compared with `predict_proba`:
``python -m benchmarks.export``.

The times are for a million rows. They are the best of three runs in one thread, and
include the time to read the column and to return the result.
"""

import argparse
import json
import pickle
from time import perf_counter

import numpy as np
from scipy.special import softmax

import skcalib
from skcalib.export import to_dict, to_onnx, to_sql, to_sql_table

_SIZES = ("pickle", "JSON", "SQL", "ONNX")
_TIMES = ("predict_proba", "SQL in DuckDB", "table in DuckDB", "ONNX float64")


def main():
    """Print two tables with a row for each recalibrator: its sizes, and its times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    n_rows = parser.parse_args().rows
    sized, timed = [], []
    for recalibrator, scores, new in cases(n_rows):
        sized.append(
            [name(recalibrator), *map(kilobytes, sizes(recalibrator, scores.shape[1]))]
        )
        timed.append([name(recalibrator), *map(milliseconds, times(recalibrator, new))])
    for head, lines in ((_SIZES, sized), (_TIMES, timed)):
        print(
            f"| recalibrator | {' | '.join(head)} |\n" + "|---" * (len(head) + 1) + "|"
        )
        print(*(f"| {' | '.join(cells)} |" for cells in lines), sep="\n", end="\n\n")


def cases(n_rows):
    """Yield (fitted recalibrator, scores of the fit, new scores)."""
    rng = np.random.default_rng(0)
    scores, new = rng.beta(0.5, 2, (20_000, 1)), rng.beta(0.5, 2, (n_rows, 1))
    y = rng.random(len(scores)) < scores[:, 0] ** 1.2
    for recalibrator in (
        skcalib.PlattScaling(),
        skcalib.BetaCalibration(),
        skcalib.SplineCalibration(),
        skcalib.HistogramBinning(15),
        skcalib.IsotonicCalibration(),
        skcalib.VennAbers(max_n_knots=500),
        skcalib.StackedRecalibrator(
            [skcalib.PlattScaling(), skcalib.SplineCalibration()], cv=2
        ),
    ):
        yield recalibrator.fit(scores, y), scores, new
    logits, new = rng.normal(size=(5_000, 10)) * 2, rng.normal(size=(n_rows, 10)) * 2
    y = (logits / 2 + rng.gumbel(size=logits.shape)).argmax(axis=1)
    for recalibrator in (
        skcalib.TemperatureScaling(),
        skcalib.VectorScaling(),
        skcalib.MatrixScaling(),
    ):
        yield recalibrator.fit(softmax(logits, axis=1), y), logits, softmax(new, axis=1)


def name(recalibrator):
    """Return the class, with the number of classes if there are more than two."""
    n_classes = len(recalibrator.classes_)
    return type(recalibrator).__name__ + (
        f", {n_classes} classes" if n_classes > 2 else ""
    )


def columns(n_columns):
    """Return the names of the columns of scores."""
    return "p" if n_columns == 1 else [f"p{k}" for k in range(n_columns)]


def expressions(recalibrator, n_columns):
    """Return the SQL of all outputs."""
    texts = to_sql(recalibrator, score=columns(n_columns), dialect="duckdb")
    return [texts] if isinstance(texts, str) else texts


def sizes(recalibrator, n_columns):
    """Return the size of each format in bytes."""
    return [
        len(pickle.dumps(recalibrator)),
        len(json.dumps(to_dict(recalibrator))),
        sum(map(len, expressions(recalibrator, n_columns))),
        len(to_onnx(recalibrator).SerializeToString()),
    ]


def times(recalibrator, new):
    """Return the seconds that each form takes, None where there is none."""
    import duckdb
    import onnxruntime
    import pyarrow

    connection = duckdb.connect(config={"threads": 1})
    listed = [columns(1)] if new.shape[1] == 1 else columns(new.shape[1])
    connection.register(
        "arrow", pyarrow.table({column: new[:, k] for k, column in enumerate(listed)})
    )
    connection.execute("CREATE TABLE t AS SELECT * FROM arrow")
    texts = ", ".join(
        f"{text} AS c{i}"
        for i, text in enumerate(expressions(recalibrator, new.shape[1]))
    )

    def fetch(tail, texts=texts):
        return lambda: connection.execute(f"SELECT {texts} FROM t {tail}").fetchnumpy()

    try:
        table = to_sql_table(recalibrator, dialect="duckdb")
        connection.execute(table.create)
        by_table = best(fetch(table.join, f"{table.expression} AS c0"))
    except ValueError:
        by_table = None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    model = to_onnx(recalibrator, dtype="float64").SerializeToString()
    session = onnxruntime.InferenceSession(
        model, options, providers=["CPUExecutionProvider"]
    )
    return [
        best(lambda: recalibrator.predict_proba(new)),
        best(fetch("")),
        by_table,
        best(lambda: session.run(None, {"scores": new})),
    ]


def best(run, n_times=3):
    """Return the least seconds of a few runs."""
    seconds = []
    for _ in range(n_times):
        start = perf_counter()
        run()
        seconds.append(perf_counter() - start)
    return min(seconds)


def kilobytes(size):
    """Return bytes as kilobytes."""
    return f"{size / 1000:.1f} kB"


def milliseconds(seconds):
    """Return seconds as milliseconds."""
    return "" if seconds is None else f"{1000 * seconds:.0f} ms"


if __name__ == "__main__":
    main()
