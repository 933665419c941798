"""The test of segments against loops over rows: their words, their statistics, the
step-down, its level and power.
"""

from itertools import product

import numpy as np
import pytest
from _catalog import refused
from scipy.special import expit, logit
from scipy.stats import norm

from skcalib.metrics import calibration_by_group, segment_calibration_test
from skcalib.metrics._segment_columns import split_column
from skcalib.metrics._segment_test import _step_down


def _table(n=800, seed=0):
    rng = np.random.default_rng(seed)
    age = np.round(rng.gamma(9, 5, n), 1)
    region = rng.choice(["north", "south", "east", None], n, p=[0.5, 0.3, 0.1, 0.1])
    visits = rng.poisson(1.0, n).astype(float)
    visits[rng.random(n) < 0.1] = np.nan
    scores = np.round(rng.beta(1, 2, n), 2)
    X = np.empty((n, 3), dtype=object)
    X[:, 0], X[:, 1], X[:, 2] = age, region, visits
    return rng.random(n) < scores, scores, X


# floats hold the even ones only
_BEYOND_FLOATS = [2**53 + 1 + k % 4 for k in range(400)]


@pytest.mark.parametrize(
    "form",
    ["pandas", "polars", "objects", "beside a fraction", "beside a negative number"],
)
def test_integers_that_floats_would_round(form):
    values = [None if k % 5 == 0 else value for k, value in enumerate(_BEYOND_FLOATS)]
    if form == "pandas":
        pandas = pytest.importorskip("pandas")
        column = pandas.Series(pandas.array(values, dtype="Int64"))
    elif form == "polars":
        column = pytest.importorskip("polars").Series(values)
    else:
        other = {
            "objects": None,
            "beside a fraction": 0.5,
            "beside a negative number": -(2**63),
        }[form]
        values = [
            (
                other
                if value is None
                else value + 2**63 * (form == "beside a negative number")
            )
            for value in values
        ]
        column = np.array(values, dtype=object)
    codes, words = split_column(column, "x", 8)
    for code, text in enumerate(words):
        conditions = (
            f"x is {None}" if text == "x is missing" else text.replace(" = ", " == ")
        )
        rows = [
            (
                value is None
                if text == "x is missing"
                else value is not None and eval(conditions, {"x": value})
            )
            for value in values
        ]
        np.testing.assert_array_equal(rows, codes == code)


def _selected(words, X):
    """Return the rows that a segment's words select, read literally."""
    rows = np.ones(len(X), dtype=bool)
    for condition in words.split(" and ") if words != "all rows" else []:
        name = next(part for part in condition.split() if part.startswith("x"))
        column = X[:, int(name[1:])]
        missing = np.array([value is None or value != value for value in column])
        if condition == f"{name} is missing":
            rows &= missing
        elif condition.startswith(f"{name} = "):
            rows &= np.array(
                [str(value) for value in column]
            ) == condition.removeprefix(f"{name} = ")
        else:
            numbers = np.where(missing, np.nan, column).astype(float)
            low, high = -np.inf, np.inf
            if f"{name} <= " in condition:
                high = float(condition.rpartition(" <= ")[2])
                low = (
                    float(condition.partition(" < ")[0])
                    if " < " in condition
                    else -np.inf
                )
            else:
                low = float(condition.removeprefix(f"{name} > "))
            rows &= (low < numbers) & (numbers <= high)
    return rows


def _statistic(y, scores, all_scores):
    """Return the range of the cumulative residuals over cells of the mid-ranks of all
    scores, in plain loops.
    """
    n = len(all_scores)
    cells = {}
    for label, score in zip(y, scores, strict=True):
        middle = (np.sum(all_scores < score) + np.sum(all_scores <= score)) / 2
        cell = int(64 * middle / n)
        cells[cell] = cells.get(cell, 0.0) + label - score
    total, sums = 0.0, [0.0]
    for cell in sorted(cells):
        total += cells[cell]
        sums.append(total)
    return (max(sums) - min(sums)) / np.sqrt(np.sum(scores * (1 - scores)) + 1)


@pytest.mark.parametrize("max_depth", [1, 2, 3])
def test_each_segment_is_its_rows(max_depth):
    y, scores, X = _table()
    options = {
        "max_depth": max_depth,
        "max_bins": 4,
        "min_size": 30,
        "n_resamples": 1,
        "random_state": 0,
    }
    segments = segment_calibration_test(y, scores, X, **options).segments
    assert len(set(segments.segment)) == len(segments)
    assert "all rows" in segments.segment
    assert max(words.count(" and ") for words in segments.segment) == max_depth - 1
    for k, words in enumerate(segments.segment):
        rows = _selected(words, X)
        assert segments.n[k] == rows.sum() >= 30
        assert segments.mean_score[k] == pytest.approx(scores[rows].mean())
        assert segments.event_frequency[k] == pytest.approx(y[rows].mean())
        assert segments.bias[k] == pytest.approx(scores[rows].mean() - y[rows].mean())
        assert segments.statistic[k] == pytest.approx(
            _statistic(y[rows], scores[rows], scores)
        )


def test_all_crossings_of_enough_rows_are_there():
    y, scores, X = _table()
    options = {"max_bins": 4, "min_size": 30, "n_resamples": 1, "random_state": 0}
    found = set(segment_calibration_test(y, scores, X, **options).segments.segment)
    single = set(
        segment_calibration_test(
            y, scores, X, max_depth=1, **options | {"min_size": 1}
        ).segments.segment
    )
    names = {
        words.split()[0 if words[0] == "x" else 2] for words in single - {"all rows"}
    }
    assert names == {"x0", "x1", "x2"}
    for one, other in product(sorted(single - {"all rows"}), repeat=2):
        both = f"{one} and {other}"
        rows = _selected(both, X).sum()
        ordered = next(x for x in ("x0", "x1", "x2") if x in one) < next(
            x for x in ("x0", "x1", "x2") if x in other
        )
        if ordered:
            assert (both in found) == (rows >= 30)


def test_the_result_is_that_of_the_first_segment():
    y, scores, X = _table()
    result = segment_calibration_test(y, scores, X, random_state=0)
    assert result.pvalue == result.segments.adjusted_pvalue[0]
    assert result.statistic == result.segments.statistic[0]
    assert np.all(np.diff(result.segments.statistic) <= 0)
    assert np.all(np.diff(result.segments.adjusted_pvalue) >= 0)
    again = segment_calibration_test(y, scores, X, random_state=0)
    np.testing.assert_array_equal(
        again.segments.adjusted_pvalue, result.segments.adjusted_pvalue
    )


def test_step_down_by_hand():
    observed = np.array([3.0, 2.0, 1.0])
    drawn = np.array([[0.5, 2.5, 0.1], [3.5, 0.0, 0.0], [0.0, 0.2, 1.5]])
    # first: one of the maxima 2.5, 3.5, 1.5 reaches 3; second: of 2.5, 0, 1.5 one
    # reaches 2; third: of .1, 0, 1.5 one
    assert _step_down(observed, drawn).tolist() == [2 / 4, 2 / 4, 2 / 4]
    assert _step_down(observed, drawn[[0, 0, 0]]).tolist() == [1 / 4, 1, 1]


@pytest.mark.slow
def test_pvalues_are_those_of_loops_over_the_same_draws():
    y, scores, X = _table(300)
    options = {"max_bins": 3, "max_depth": 2, "min_size": 20}
    result = segment_calibration_test(
        y, scores, X, n_resamples=400, random_state=0, **options
    )
    rows = [_selected(words, X) for words in result.segments.segment]
    rng = np.random.default_rng(0)
    drawn = np.array(
        [
            [_statistic(labels[own], scores[own], scores) for own in rows]
            for labels in rng.random((60, 300)) < scores
        ]
    )
    for k in range(len(rows)):
        share = np.mean(drawn[:, k:].max(axis=1) >= result.segments.statistic[k])
        assert result.segments.adjusted_pvalue[k] >= share - 4 * np.sqrt(0.25 / 60)
    worst = np.mean(drawn.max(axis=1) >= result.statistic)
    assert result.pvalue == pytest.approx(worst, abs=0.25)


def test_a_crossing_with_the_rows_of_its_column_is_left_out():
    rng = np.random.default_rng(0)
    scores = rng.random(400)
    y, column = rng.random(400) < scores, rng.integers(0, 2, 400)
    X = np.column_stack((column, column, np.zeros(400)))
    result = segment_calibration_test(y, scores, X, n_resamples=9, random_state=0)
    assert sorted(result.segments.segment) == [
        "all rows",
        "x0 <= 0",
        "x0 > 0",
        "x1 <= 0",
        "x1 > 0",
    ]


def test_numbers_are_cut_at_quantiles_and_read_back_exactly():
    rng = np.random.default_rng(0)
    for dtype in (np.float64, np.float32, np.int64):
        values = (100 * rng.normal(size=1000)).astype(dtype)
        split = split_column(values, "x0", 8)
        assert np.bincount(split.codes).min() >= (110 if dtype != np.int64 else 100)
        for part, words in enumerate(split.words):
            np.testing.assert_array_equal(
                _selected(words, values[:, None]), split.codes == part
            )
            ends = [
                float(word)
                for word in words.replace("x0", "").split()
                if word not in ("<", "<=", ">")
            ]
            literal = np.ones(1000, dtype=bool)
            if " < " in words:  # as written by hand, in the precision of the column
                literal &= values > ends[0]
            literal &= values <= ends[-1] if "<=" in words else values > ends[-1]
            np.testing.assert_array_equal(literal, split.codes == part)
            assert len(words) < 40


def test_a_column_that_is_mostly_one_value_is_split_all_the_same():
    for values in (
        np.repeat([0.0, 1.0], [5, 95]),
        np.append(np.arange(10) / 10, np.full(990, 7.5)),
    ):
        split = split_column(values, "x", 8)
        assert split.words[-1].startswith("x > ")
        assert np.all((split.codes == len(split.words) - 1) == (values == values.max()))
    assert split_column(np.repeat([0, 1], [95, 5]), "x", 2).words == ["x <= 0", "x > 0"]
    assert split_column(np.full(5, 3), "x", 2).words == ["x <= 3"]
    assert split_column(np.array([3.0, np.nan]), "x", 2).words == [
        "x <= 3",
        "x is missing",
    ]
    assert split_column(np.array([-np.inf, 1.0, np.inf]), "x", 2).words == [
        "x <= 1",
        "x > 1",
    ]


def test_categories():
    values = np.repeat(["a", "b", "c", "d"], [5, 40, 30, 25])
    assert split_column(values, "x", 4).words == ["x = a", "x = b", "x = c", "x = d"]
    assert split_column(values, "x", 3).words == [
        "x = b",
        "x = c",
        "x has another value",
    ]
    assert split_column(np.array([True, False, True]), "x", 8).words == [
        "x = False",
        "x = True",
    ]
    assert split_column(np.array([None, None]), "x", 8).words == ["x is missing"]
    with refused(ValueError, "x", "hashed"):
        split_column(np.array([[1], [2, 3]], dtype=object), "x", 8)
    with refused(ValueError, "x", "complex"):
        split_column(np.array([1j]), "x", 8)


def test_dates():
    days = np.array(
        ["2024-01-01", "2024-01-02", "NaT", "2024-01-03"], dtype="datetime64[D]"
    )
    split = split_column(days, "day", 2)
    assert split.words == ["day <= 2024-01-02", "day > 2024-01-02", "day is missing"]
    assert split.codes.tolist() == [0, 0, 2, 1]


def test_columns_of_pandas():
    pandas = pytest.importorskip("pandas")
    n = 300
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "age": pandas.array(rng.choice([20, 30, None], n), dtype="Int64"),
            "grade": pandas.Categorical(rng.choice([1, 2], n)),
            "vip": pandas.array(rng.choice([True, False, None], n), dtype="boolean"),
            "when": pandas.to_datetime(
                rng.choice(["2024-01-01", "2024-06-01"], n), utc=True
            ),
            "city": pandas.array(rng.choice(["Ulm", "Rom"], n), dtype="string"),
        },
        index=rng.permutation(n),
    )
    scores = rng.random(n)
    result = segment_calibration_test(
        rng.random(n) < scores,
        scores,
        frame,
        max_depth=1,
        min_size=1,
        n_resamples=9,
        random_state=0,
    )
    expected = {
        "all rows",
        "age <= 20",
        "age > 20",
        "age is missing",
        "grade = 1",
        "grade = 2",
        "vip = False",
    }
    expected |= {"vip = True", "vip is missing", "city = Rom", "city = Ulm"}
    dates = {words for words in result.segments.segment if words.startswith("when")}
    assert set(result.segments.segment) - dates == expected
    assert {words[:19] for words in dates} == {
        "when <= 2024-01-01T",
        "when > 2024-01-01T0",
    }
    series = segment_calibration_test(
        rng.random(n) < scores,
        scores,
        frame["city"],
        min_size=1,
        n_resamples=9,
        random_state=0,
    )
    assert set(series.segments.segment) == {"all rows", "city = Rom", "city = Ulm"}
    assert series.segments.to_frame().shape == (3, 7)


def test_columns_of_polars():
    polars = pytest.importorskip("polars")
    scores = np.linspace(0.1, 0.9, 100)
    frame = polars.DataFrame(
        {"age": [20, 30, None, 40] * 25, "city": ["Ulm", "Rom", "Rom", None] * 25}
    )
    result = segment_calibration_test(
        np.arange(100) % 2,
        scores,
        frame,
        max_depth=1,
        min_size=1,
        n_resamples=9,
        random_state=0,
    )
    expected = {
        "age <= 20",
        "20 < age <= 30",
        "age > 30",
        "age is missing",
        "city = Rom",
        "city = Ulm",
    }
    assert set(result.segments.segment) == expected | {"all rows", "city is missing"}


def test_many_classes_by_the_predicted_class():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 500)
    y = np.minimum((rng.random((500, 1)) > proba.cumsum(axis=1)).sum(axis=1), 2)
    X = rng.integers(0, 2, (500, 1))
    result = segment_calibration_test(y, proba, X, random_state=0)
    binary = segment_calibration_test(
        y == proba.argmax(axis=1), proba.max(axis=1), X, random_state=0
    )
    assert result.segments.mean_score.tolist() == binary.segments.mean_score.tolist()
    assert result.pvalue == binary.pvalue
    with refused(ValueError, "multiclass", "marginal"):
        segment_calibration_test(y, proba, X, multiclass="marginal")


def test_wrong_input_is_named():
    y, scores, X = _table(100)
    with refused(ValueError, "X has 99 rows", "y_proba has 100"):
        segment_calibration_test(y, scores, X[:99])
    with refused(ValueError, "X", "at least one column"):
        segment_calibration_test(y, scores, X[:, :0])
    with refused(TypeError, "X", "sparse"):
        from scipy.sparse import csr_array

        segment_calibration_test(y, scores, csr_array(np.eye(100)))
    for name, value in {
        "max_depth": 0,
        "max_bins": 1,
        "min_size": 0,
        "n_resamples": 0,
    }.items():
        with refused(ValueError, name):
            segment_calibration_test(y, scores, X, **{name: value})
    pandas = pytest.importorskip("pandas")
    with refused(ValueError, "two columns", "'a'"):
        segment_calibration_test(
            y, scores, pandas.DataFrame(X, columns=["a", "b", "a"])
        )


def test_fewer_rows_than_a_segment_needs_leave_all_rows():
    y, scores, X = _table(40)
    assert segment_calibration_test(
        y, scores, X, random_state=0
    ).segments.segment.tolist() == ["all rows"]


def _drawn(rng, n, n_columns, shape):
    scores = {
        "smooth": rng.beta(1, 3, n),
        "rare": rng.beta(1, 60, n),
        "tied": rng.integers(1, 10, n) / 10,
    }[shape]
    return scores, rng.normal(size=(n, n_columns))


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["smooth", "rare", "tied"])
@pytest.mark.parametrize(("n", "n_columns"), [(500, 2), (2000, 6)])
def test_level_over_all_segments(n, n_columns, shape):
    rng = np.random.default_rng(0)
    rejected = 0
    for seed in range(80):
        scores, X = _drawn(rng, n, n_columns, shape)
        result = segment_calibration_test(
            rng.random(n) < scores, scores, X, n_resamples=99, random_state=seed
        )
        rejected += result.pvalue <= 0.05
    # more than this of 80 has a chance of .2 % at a level of .05
    assert rejected <= 10


@pytest.mark.slow
def test_a_planted_segment_is_found():
    rng = np.random.default_rng(0)
    found = 0
    for seed in range(20):
        scores, X = _drawn(rng, 2000, 5, "smooth")
        planted = (X[:, 1] > 0.6) & (X[:, 3] > 0.3)  # about a tenth of the rows
        y = rng.random(2000) < expit(logit(scores) + planted)
        result = segment_calibration_test(
            y, scores, X, max_bins=4, n_resamples=99, random_state=seed
        )
        found += result.pvalue <= 0.05 and (
            "x1" in result.segments.segment[0] or "x3" in result.segments.segment[0]
        )
    assert found >= 17


def test_whole_weights_are_repeated_rows():
    y, scores, X = _table(300)
    weight = np.random.default_rng(1).integers(0, 4, 300)
    options = {"n_resamples": 19, "random_state": 0}
    found = segment_calibration_test(y, scores, X, sample_weight=weight, **options)
    rows = np.repeat(np.arange(300), weight)
    expected = segment_calibration_test(y[rows], scores[rows], X[rows], **options)
    assert found.segments.segment.tolist() == expected.segments.segment.tolist()
    for name in ("n", "mean_score", "event_frequency", "statistic", "adjusted_pvalue"):
        np.testing.assert_array_equal(
            getattr(found.segments, name), getattr(expected.segments, name)
        )
    with refused(
        ValueError,
        "sample_weight",
        "whole numbers",
        "row 2",
        'weight_type="importance"',
    ):
        segment_calibration_test(
            y, scores, X, sample_weight=np.where(np.arange(300) == 2, 0.5, 1)
        )
    with refused(ValueError, "sample_weight", "3e+11", "at most 1e+08"):
        segment_calibration_test(y, scores, X, sample_weight=np.full(300, 1e9))
    with refused(ValueError, "clusters", "300"):
        segment_calibration_test(y, scores, X, clusters=np.zeros(3))


def _dependent(seed, n_clusters=40, size=15):
    """Calibrated scores whose labels depend on each other within clusters, as one
    column does.
    """
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(n_clusters), size)
    scores = rng.beta(1, 3, len(cluster))
    level = np.sqrt(0.3) * rng.normal(size=n_clusters)[cluster] + np.sqrt(
        0.7
    ) * rng.normal(size=len(cluster))
    return (
        norm.cdf(level) < scores,
        scores,
        rng.normal(size=n_clusters)[cluster][:, None],
        cluster,
    )


def test_importance_weights_by_loops():
    rng = np.random.default_rng(4)
    scores, side = rng.random(200), np.repeat(["a", "b"], 100)
    y, weight = rng.random(200) < scores, 1 + rng.pareto(2.2, 200)
    weight[7] = 0
    options = {
        "X": side[:, None],
        "weight_type": "importance",
        "n_resamples": 20,
        "random_state": 0,
    }
    # The label does not change the weight.
    declared = {"weight_type": {0: weight, 1: weight}}
    found = segment_calibration_test(
        y, scores, sample_weight=weight, **options | declared
    )
    kept = np.arange(200) != 7
    worth = weight * weight.sum() / np.sum(weight**2)
    for name, n, mean, frequency, statistic in zip(
        found.segments.segment, found.segments.n, found.segments.mean_score, found.segments.event_frequency,  # noqa: E501
        found.segments.statistic, strict=True,
    ):  # fmt: skip
        rows = kept & ((side == name[-1]) | (name == "all rows"))
        order = np.flatnonzero(rows)[np.argsort(scores[rows])]
        assert n == rows.sum()
        assert mean == pytest.approx(np.average(scores[rows], weights=weight[rows]))
        assert frequency == pytest.approx(np.average(y[rows], weights=weight[rows]))
        # cells of all rows
        edges = np.floor(64 * (np.argsort(np.argsort(scores[kept])) + 0.5) / 199)
        cell = dict(zip(np.flatnonzero(kept), edges, strict=True))
        total, sums = 0.0, {}
        for row in order:
            total += worth[row] * (y[row] - scores[row])
            sums[cell[row]] = total
        spread = np.sum(worth[rows] ** 2 * scores[rows] * (1 - scores[rows])) + 1
        expected = (max(0, *sums.values()) - min(0, *sums.values())) / np.sqrt(spread)
        assert statistic == pytest.approx(expected)
    declared = {"weight_type": {0: 1000 * weight, 1: 1000 * weight}}
    again = segment_calibration_test(
        y, scores, sample_weight=1000 * weight, **options | declared
    )
    assert again.pvalue == found.pvalue
    equal = segment_calibration_test(
        y, scores, sample_weight=np.full(200, 0.3), **options
    )
    plain = segment_calibration_test(
        y, scores, **options | {"weight_type": "frequency"}
    )
    assert equal.pvalue == plain.pvalue
    assert equal.statistic == pytest.approx(plain.statistic)
    with refused(ValueError, "whole numbers", 'weight_type="importance"'):
        segment_calibration_test(
            y, scores, sample_weight=weight, **options | {"weight_type": "frequency"}
        )


@pytest.mark.slow
def test_level_of_skewed_weights():
    pvalues = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        scores, X = rng.random(800), rng.random((800, 2))
        weights = {
            "sample_weight": 1 + rng.pareto(2.2, 800),
            "weight_type": "importance",
        }
        y = rng.random(800) < scores
        pvalues.append(
            segment_calibration_test(
                y, scores, X, n_resamples=99, random_state=seed, **weights
            ).pvalue
        )
    # more than 16 of 150 has a chance of .4 % at a level of .05
    assert np.mean(np.array(pvalues) <= 0.05) <= 0.107
    assert np.mean(np.array(pvalues) <= 0.5) >= 0.35


def test_columns_of_pyarrow():
    pa = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    scores = rng.random(400)
    y, number = rng.random(400) < scores, rng.integers(0, 9, 400)
    text = np.where(number > 4, "high", "low")
    columns = {
        "number": number,
        "text": text,
        "big": [None if one == 3 else int(2**60 + one) for one in number],
    }
    table = pa.table(columns | {"code": pa.array(text).dictionary_encode()})
    found = segment_calibration_test(y, scores, table, n_resamples=5, random_state=0)
    plain = np.column_stack([number.astype(object), text, columns["big"], text]).astype(
        object
    )
    expected = segment_calibration_test(y, scores, plain, n_resamples=5, random_state=0)
    assert found.statistic == expected.statistic
    names = dict(zip(["x0", "x1", "x2", "x3"], table.column_names, strict=True))
    words = [
        " ".join(names.get(word, word) for word in one.split(" "))
        for one in expected.segments.segment
    ]
    assert found.segments.segment.tolist() == words
    weighted = segment_calibration_test(
        y, scores, table, sample_weight=np.ones(400), n_resamples=5, random_state=0
    )
    assert weighted.segments.segment.tolist() == words


@pytest.mark.slow
def test_clusters_keep_the_level_where_rows_alone_do_not():
    rejected = np.zeros(2)
    for seed in range(60):
        y, scores, X, cluster = _dependent(seed)
        for k, clusters in enumerate((cluster, None)):
            options = {"max_bins": 3, "n_resamples": 39, "random_state": seed}
            rejected[k] += (
                segment_calibration_test(
                    y, scores, X, clusters=clusters, **options
                ).pvalue
                <= 0.05
            )
    assert rejected[0] <= 8
    assert rejected[1] >= 12


def test_clusters_of_one_row_agree_with_rows():
    y, scores, X = _table(800)
    options = {"n_resamples": 199, "random_state": 0}
    rows = segment_calibration_test(y, scores, X, **options).segments
    signs = segment_calibration_test(
        y, scores, X, clusters=np.arange(800), **options
    ).segments
    np.testing.assert_array_equal(rows.statistic, signs.statistic)
    assert np.max(np.abs(rows.adjusted_pvalue - signs.adjusted_pvalue)) < 0.15


def test_values_of_one_text_are_two_segments_of_two_names():
    rng = np.random.default_rng(0)
    column = np.array([1, "1"] * 200, dtype=object)
    result = segment_calibration_test(
        rng.random(400) < 0.5,
        rng.random(400),
        column[:, None],
        n_resamples=9,
        random_state=0,
    )
    assert {"x0 = 1", "x0 = '1'"} <= set(result.segments.segment)


def test_groups_without_an_order_are_refused():
    values = [frozenset("ab"), frozenset("bc"), frozenset("cd"), frozenset("ad")]
    groups = np.empty(400, dtype=object)
    groups[:] = [values[k % 4] for k in np.random.default_rng(0).integers(0, 99, 400)]
    with refused(ValueError, "groups contains values without an order", "use strings"):
        calibration_by_group(np.arange(400) % 2, np.full(400, 0.5), groups)


def test_two_columns_are_crossed_and_not_three():
    rng = np.random.default_rng(0)
    scores, X = rng.random(400), rng.integers(0, 2, (400, 3))
    found = segment_calibration_test(
        rng.random(400) < scores, scores, X, min_size=10, n_resamples=3, random_state=0
    )
    assert max(words.count(" and ") for words in found.segments.segment) == 1
